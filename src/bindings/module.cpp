// The extension module: one file of bindings per group of kernels.
#include <omp.h>

#include "bindings/arrays.hpp"

void bind_sweep(nb::module_&);
void bind_many(nb::module_&);
void bind_hinge(nb::module_&);
void bind_tangents(nb::module_&);
void bind_multiclass(nb::module_&);
void bind_pairwise(nb::module_&);
void bind_dcd(nb::module_&);
void bind_svmlight(nb::module_&);
void bind_reduced(nb::module_&);
void bind_kernel_machines(nb::module_&);

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

}  // namespace

NB_MODULE(CUTSVM_MODULE, m) {
    m.def("cpu_level", &cpu_level);
    m.def("max_threads", [] { return omp_get_max_threads(); });
    bind_sweep(m);
    bind_many(m);
    bind_hinge(m);
    bind_tangents(m);
    bind_multiclass(m);
    bind_pairwise(m);
    bind_dcd(m);
    bind_svmlight(m);
    bind_reduced(m);
    bind_kernel_machines(m);
}
