// The extension module: one file of bindings per group of kernels.
#include <omp.h>

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"
#include "bindings/row_losses.hpp"
#include "core/interrupt.hpp"

void bind_sweep(nb::module_&, BoundMatrix&);
void bind_many(nb::module_&, BoundMatrix&);
void bind_row_losses(BoundRowLoss&);
void bind_hinge(nb::module_&, BoundRowLoss&);
void bind_tangents(nb::module_&, BoundMatrix&);
void bind_multiclass(nb::module_&);
void bind_multinomial(nb::module_&);
void bind_pairwise(nb::module_&);
void bind_dcd(BoundMatrix&);
void bind_svmlight(nb::module_&);
void bind_reduced(nb::module_&);
void bind_kernel_machines(nb::module_&, BoundMatrix&);
void bind_kernel_dual(nb::module_&);
void bind_mapped_files(nb::module_&);

namespace {

// The x86-64 level (2, 3 or 4) that this machine runs; 0 on other processors.
int cpu_level() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return 4;
    if (__builtin_cpu_supports("x86-64-v3")) return 3;
    return 2;
#else
    return 0;
#endif
}

// Runs the handlers of signals that came in the meantime, which Python does only between its own instructions and on its
// main thread. True if one of them raised: the exception is set, and waits until the kernel has returned.
bool interrupted() {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

// What the handler raised, as KeyboardInterrupt, is set already.
void translate_interrupt(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const cutsvm::Interrupted&) {
        if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
}

}  // namespace

NB_MODULE(CUTSVM_MODULE, m) {
    nb::set_leak_warnings(false);  // what lives until the interpreter ends is no leak
    cutsvm::interrupt_hook = &interrupted;
    nb::register_exception_translator(&translate_interrupt);
    m.def("cpu_level", &cpu_level);
    m.def("max_threads", [] { return omp_get_max_threads(); });
    BoundMatrix matrix(m, "Matrix");
    BoundRowLoss row_loss(m, "RowLoss");
    bind_sweep(m, matrix);
    bind_many(m, matrix);
    bind_row_losses(row_loss);
    bind_hinge(m, row_loss);
    bind_tangents(m, matrix);
    bind_multiclass(m);
    bind_multinomial(m);
    bind_pairwise(m);
    bind_dcd(matrix);
    bind_svmlight(m);
    bind_reduced(m);
    bind_kernel_machines(m, matrix);
    bind_kernel_dual(m);
    bind_mapped_files(m);
}
