// Bindings of core/kernel_values.hpp and core/kernel_dual.hpp.
#include <memory>
#include <optional>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"
#include "bindings/problems.hpp"
#include "core/kernel_dual.hpp"
#include "core/kernel_values.hpp"

using namespace cutsvm;

namespace {

using Places = Vector<std::int64_t>;
template <class T>
using Values2D = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows2D = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check_places(View<const std::int64_t> places, std::int64_t end, const char* what) {
    for (const std::int64_t place : places) check(0 <= place && place < end, what);
}

std::vector<double> copy_of(const Vector<double>& values) { return {values.data(), values.data() + values.shape(0)}; }

// SciPy's BLAS: scipy.linalg.cython_blas exports its functions as capsules, which spares us a BLAS of our own.
template <class T>
Gemm<T> gemm_of(nb::handle capsule) {
    check(PyCapsule_CheckExact(capsule.ptr()) != 0, "gemm: a capsule expected");
    void* const found = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (found == nullptr) throw nb::python_error();
    return reinterpret_cast<Gemm<T>>(found);
}

KernelKind kind_of(const std::string& name) {
    check(name == "linear" || name == "poly" || name == "rbf" || name == "sigmoid",
          "kernel: linear, poly, rbf or sigmoid expected");
    return name == "linear" ? KernelKind::linear
           : name == "poly" ? KernelKind::poly
           : name == "rbf"  ? KernelKind::rbf
                            : KernelKind::sigmoid;
}

// Rows with a kernel: a block of memory that is read in place.
template <class T>
class KernelBlock {
  public:
    KernelBlock(nb::object gemm, const std::string& kernel, double gamma, double coef0, int degree, double offset,
                const Rows2D<T>& X, const Vector<T>& squares, int threads)
        : gemm_(gemm_of<T>(gemm)),
          kernel_{kind_of(kernel), gamma, coef0, offset, degree},
          X_(X),
          squares_(squares),
          threads_(threads) {
        check(squares.shape(0) == X.shape(0), "squares: one entry per row expected");
        check(extent(X, 1) <= std::numeric_limits<int>::max(), "X: fewer columns expected");
        check(threads > 0 && degree > 0, "threads, degree: 1 or more expected");
    }

    Block<T> block() const { return {X_.data(), squares_.data(), extent(X_), extent(X_, 1)}; }

    ComputedValues<T> computed() const { return {gemm_, kernel_, block()}; }

    // The values of these rows with all, row k at places[k].
    // requires: rows below n; different places.
    void fill(View<const std::int64_t> rows, View<const std::int64_t> places, T* values, std::int64_t stride) const {
        kernel_rows(gemm_, kernel_, block().some(rows).block(), block(), places, values, stride, threads_);
    }

    // out[k, j] = K(x_k, x_j) for the rows k that are named, and all j.
    void rows(const Places& which, const Values2D<T>& out) const {
        check_places(view(which), extent(X_), "rows: row numbers below n expected");
        check(out.shape(0) == which.shape(0) && out.shape(1) == X_.shape(0), "out: rows x n expected");
        std::vector<std::int64_t> places(which.shape(0));
        std::iota(places.begin(), places.end(), 0);
        released([&] { fill(view(which), places, out.data(), extent(out, 1)); });
    }

    // out = the values of all pairs of rows.
    void matrix(const Values2D<T>& out) const {
        check(out.shape(0) == X_.shape(0) && out.shape(1) == X_.shape(0), "out: n x n expected");
        released([&] { kernel_matrix(gemm_, kernel_, block(), out.data(), threads_); });
    }

    // out[j] = sum_i coef_i K(x_i, z_j), x_i the rows of this block, z_j those of another.
    void scores(const Vector<double>& coef, const KernelBlock& others, const VectorOut<double>& out) const {
        check(coef.shape(0) == X_.shape(0), "coef: one entry per row expected");
        check(out.shape(0) == others.X_.shape(0), "out: one entry per row of the other block expected");
        check(X_.shape(1) == others.X_.shape(1), "blocks differ in features");
        std::fill_n(out.data(), out.shape(0), 0.0);
        released([&] { kernel_scores(gemm_, kernel_, block(), others.block(), view(coef), view(out), threads_); });
    }

    // out[j] += sum_i coef_i K(x_i, x_j), the part of it that is due to the tiles [first, last) of columns.
    void own_scores(const Vector<double>& coef, std::int64_t first, std::int64_t last,
                    const VectorOut<double>& out) const {
        check(coef.shape(0) == X_.shape(0) && out.shape(0) == X_.shape(0), "coef, out: one entry per row expected");
        check(0 <= first && first <= last && last <= count_tiles(extent(X_)), "first, last: tiles expected");
        released([&] { kernel_own_scores(gemm_, kernel_, block(), view(coef), first, last, view(out), threads_); });
    }

  private:
    Gemm<T> gemm_;
    KernelFunction kernel_;
    Rows2D<T> X_;
    Vector<T> squares_;
    int threads_;
};

// The state of a dual with its cache of kernel rows, which is memory of the caller's. Rows come from a KernelBlock, or from
// a function rows -> their values with all rows.
template <class V>
class KernelDual {
  public:
    KernelDual(const Values2D<V>& memory, const Vector<double>& c, const Vector<double>& low,
               const Vector<double>& high, const Vector<double>& s, const Vector<double>& f, double norm,
               const Places& row_of, bool free_intercept, const Vector<double>& sizes, nb::object source, int threads)
        : memory_(memory),
          state_{copy_of(c),     copy_of(low),
                 copy_of(high),  copy_of(s),
                 copy_of(f),     std::vector<std::int64_t>(row_of.data(), row_of.data() + row_of.shape(0)),
                 free_intercept, norm},
          cache_(memory.data(), extent(memory, 1), extent(memory), extent(f), nullptr),
          threads_(threads) {
        const std::size_t size = c.shape(0);
        check(low.shape(0) == size && high.shape(0) == size && s.shape(0) == size && row_of.shape(0) == size,
              "c, low, high, s, row_of: one entry per variable expected");
        check_places(state_.row_of, extent(f), "row_of: row numbers below n expected");
        for (std::size_t v = 0; v < size; ++v)
            check(state_.low[v] <= state_.s[v] && state_.s[v] <= state_.high[v], "s: between low and high expected");
        check(size > 0 && memory.shape(1) == f.shape(0) && memory.shape(0) >= 2 && threads > 0,
              "memory: at least 2 x n values expected");
        check(sizes.shape(0) == f.shape(0), "sizes: one entry per row expected");
        state_.sizes = copy_of(sizes);
        check_source(source, extent(f));
        set_source(std::move(source));
    }

    // Iterations; why they ended: "target", "iterations", "stalled" or "time".
    std::string run(double target, std::int64_t most_iterations, double seconds, const DualSettings& settings) {
        Interrupt interrupt(seconds);
        const DualEnd end = released(
            [&] { return solve_dual(state_, cache_, settings, target, most_iterations, threads_, interrupt); });
        interrupt.rethrow();
        switch (end) {
            case DualEnd::target:
                return "target";
            case DualEnd::iterations:
                return "iterations";
            case DualEnd::stalled:
                return "stalled";
            default:
                return "time";
        }
    }

    // Goes on with these variables and rows alone, both rising; f stays as it is.
    // requires: the rows of the variables are among the rows; `source`: for them.
    void restrict(const Places& variables, const Places& rows, nb::object source) {
        const auto kept = view(variables), rest = view(rows);
        check(!kept.empty() && !rest.empty(), "variables, rows: at least one expected");
        check_places(kept, std::ssize(state_.s), "variables: numbers of variables expected");
        check_places(rest, std::ssize(state_.f), "rows: row numbers below n expected");
        check(std::adjacent_find(kept.begin(), kept.end(), std::greater_equal<>()) == kept.end(),
              "variables: rising numbers expected");
        check(std::adjacent_find(rest.begin(), rest.end(), std::greater_equal<>()) == rest.end(),
              "rows: rising numbers expected");
        std::vector<std::int64_t> row_number(state_.f.size(), -1), number(state_.s.size(), -1);
        for (std::int64_t k = 0; k < rest.size(); ++k) row_number[rest[k]] = k;
        for (std::int64_t k = 0; k < kept.size(); ++k) {
            number[kept[k]] = k;
            check(row_number[state_.row_of[kept[k]]] >= 0, "rows: those of all variables expected");
        }
        check_source(source, rest.size());  // nothing has changed until here
        for (std::size_t v = 0; v < state_.s.size(); ++v)
            if (number[v] < 0) state_.outside += state_.c[v] * state_.s[v];
        const auto some = [&](std::vector<double>& values, View<const std::int64_t> which) {
            for (std::int64_t k = 0; k < which.size(); ++k) values[k] = values[which[k]];
            values.resize(which.size());
        };
        for (std::vector<double>* values : {&state_.c, &state_.low, &state_.high, &state_.s}) some(*values, kept);
        for (std::int64_t k = 0; k < kept.size(); ++k) state_.row_of[k] = row_number[state_.row_of[kept[k]]];
        state_.row_of.resize(kept.size());
        some(state_.f, rest);
        some(state_.sizes, rest);
        std::vector<std::int64_t> last;
        for (const std::int64_t v : state_.last)
            if (number[v] >= 0) last.push_back(number[v]);
        state_.last = std::move(last);
        cache_.keep(rest);
        set_source(std::move(source));
    }

    std::tuple<double, double, double, double> optimality() const {
        const DualOptimality seen = cutsvm::optimality(state_.view(), threads_);
        return {seen.top, seen.bottom, seen.intercept, seen.gap};
    }
    auto s() const { return to_numpy(std::vector<double>(state_.s)); }
    auto f() const { return to_numpy(std::vector<double>(state_.f)); }
    double norm() const { return state_.norm; }
    std::tuple<double, double, double> moved() const { return {state_.moved[0], state_.moved[1], state_.moved[2]}; }
    std::int64_t iterations() const { return state_.iterations; }
    std::int64_t steps() const { return state_.steps; }
    std::int64_t computed() const { return cache_.computed(); }
    std::int64_t capacity() const { return cache_.capacity(); }

  private:
    static void check_source(nb::handle source, std::int64_t n) {
        if (nb::isinstance<KernelBlock<V>>(source))
            check(nb::cast<const KernelBlock<V>*>(source)->block().n == n,
                  "source: a block with the rows of this dual expected");
        else
            check(PyCallable_Check(source.ptr()) != 0, "source: a KernelBlock or a function expected");
    }

    // requires: check_source.
    void set_source(nb::object source) {
        source_ = std::move(source);
        V* const values = memory_.data();
        if (nb::isinstance<KernelBlock<V>>(source_)) {
            const auto* block = nb::cast<const KernelBlock<V>*>(source_);
            cache_.set_fill(
                [block, values, this](auto rows, auto places) { block->fill(rows, places, values, cache_.stride()); });
            return;
        }
        cache_.set_fill([values, this](auto rows, auto places) {
            nb::gil_scoped_acquire gil;
            const auto found =
                nb::cast<Rows2D<V>>(source_(to_numpy(std::vector<std::int64_t>(rows.begin(), rows.end()))));
            check(extent(found) == rows.size() && extent(found, 1) == cache_.size(), "values: rows x n expected");
            for (std::int64_t k = 0; k < rows.size(); ++k)
                std::copy_n(found.data() + k * extent(found, 1), extent(found, 1),
                            values + places[k] * cache_.stride());
        });
    }

    Values2D<V> memory_;
    DualState state_;
    RowCache<V> cache_;
    int threads_;
    nb::object source_;
};

using CubeOut = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

DualSettings settings_of(std::int64_t working_set, double kept, double inner_share, std::int64_t inner_steps,
                         double least_violation) {
    check(working_set >= 2 && kept >= 0.0 && kept < 1.0 && inner_steps > 0, "settings out of range");
    return {working_set, kept, inner_share, inner_steps, least_violation};
}

// Where kernel values come from: a matrix, or the rows that they are of.
template <class V>
MatrixValues<V> values_of(const Array2D<V>& gram) {
    check(gram.stride(1) == 1 || gram.shape(1) <= 1, "kernel: contiguous rows expected");
    return {gram.data(), gram.stride(0)};
}
template <class V>
ComputedValues<V> values_of(const KernelBlock<V>& block) {
    return block.computed();
}
template <class V>
std::int64_t rows_of(const Array2D<V>& gram) {
    return std::min(extent(gram), extent(gram, 1));
}
template <class V>
std::int64_t rows_of(const KernelBlock<V>& block) {
    return block.block().n;
}

template <class Kernel>
void bound_solve_pairs(const Kernel& kernel, const Rows32& rows, const Vector<double>& a, const Places& first,
                       const Vector<double>& Cs, bool free_intercept, double target, std::int64_t most_iterations,
                       double seconds, const Array2DOut<double>& alpha, const CubeOut& seen,
                       const VectorOut<double>& scores, std::int64_t working_set, double kept, double inner_share,
                       std::int64_t inner_steps, double least_violation, int threads) {
    const Problems problems = problems_of(rows, a, first);
    check_within(rows, 0, rows_of(kernel), "rows: row numbers within range expected");
    const std::int64_t versions = extent(Cs);
    check(extent(alpha) == extent(rows) && extent(alpha, 1) >= versions && versions > 0,
          "alpha: rows x versions expected");
    check(extent(seen) == problems.count() && extent(seen, 1) == versions && seen.shape(2) == 3,
          "seen: problems x versions x 3 expected");
    check(extent(scores) == 0 || extent(scores) == extent(rows), "scores: one per row, or none expected");
    check(std::is_sorted(Cs.data(), Cs.data() + versions) && Cs.data()[0] > 0.0, "Cs: rising numbers above 0 expected");
    check(threads > 0, "threads: 1 or more expected");
    const DualSettings settings = settings_of(working_set, kept, inner_share, inner_steps, least_violation);
    std::vector<DualSeen> found(problems.count() * versions);
    const auto source = values_of(kernel);
    released([&] {
        solve_pairs(source, problems, view(Cs), free_intercept, settings, target, most_iterations, seconds,
                    alpha.data(), extent(alpha, 1), found.data(), view(scores), threads);
    });
    double* out = seen.data();
    for (const DualSeen& one : found) *out++ = one.primal, *out++ = one.dual, *out++ = one.intercept;
}

template <class Kernel>
void bind_solve_pairs(nb::module_& m) {
    m.def("solve_pairs", &bound_solve_pairs<Kernel>, "kernel"_a.noconvert(), "rows"_a.noconvert(), "a"_a.noconvert(),
          "first"_a.noconvert(), "Cs"_a.noconvert(), "free_intercept"_a, "target"_a, "most_iterations"_a, "seconds"_a,
          "alpha"_a.noconvert(), "seen"_a.noconvert(), "scores"_a.noconvert(), "working_set"_a, "kept"_a,
          "inner_share"_a, "inner_steps"_a, "least_violation"_a, "threads"_a);
}

template <class T>
void bind_kind(nb::module_& m, const char* block, const char* dual) {
    nb::class_<KernelBlock<T>>(m, block)
        .def(nb::init<nb::object, const std::string&, double, double, int, double, const Rows2D<T>&, const Vector<T>&,
                      int>(),
             "gemm"_a, "kernel"_a, "gamma"_a, "coef0"_a, "degree"_a, "offset"_a, "X"_a.noconvert(),
             "squares"_a.noconvert(), "threads"_a)
        .def("rows", &KernelBlock<T>::rows, "which"_a.noconvert(), "out"_a.noconvert())
        .def("matrix", &KernelBlock<T>::matrix, "out"_a.noconvert())
        .def("scores", &KernelBlock<T>::scores, "coef"_a.noconvert(), "others"_a, "out"_a.noconvert())
        .def("own_scores", &KernelBlock<T>::own_scores, "coef"_a.noconvert(), "first"_a, "last"_a, "out"_a.noconvert());
    bind_solve_pairs<Array2D<T>>(m);
    bind_solve_pairs<KernelBlock<T>>(m);
    nb::class_<KernelDual<T>>(m, dual)
        .def(nb::init<const Values2D<T>&, const Vector<double>&, const Vector<double>&, const Vector<double>&,
                      const Vector<double>&, const Vector<double>&, double, const Places&, bool, const Vector<double>&,
                      nb::object, int>(),
             "memory"_a.noconvert(), "c"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "s"_a.noconvert(),
             "f"_a.noconvert(), "norm"_a, "row_of"_a.noconvert(), "free_intercept"_a, "sizes"_a.noconvert(), "source"_a,
             "threads"_a)
        .def(
            "run",
            [](KernelDual<T>& own, double target, std::int64_t most_iterations, double seconds,
               std::int64_t working_set, double kept, double inner_share, std::int64_t inner_steps,
               double least_violation) {
                return own.run(target, most_iterations, seconds,
                               settings_of(working_set, kept, inner_share, inner_steps, least_violation));
            },
            "target"_a, "most_iterations"_a, "seconds"_a, "working_set"_a, "kept"_a, "inner_share"_a, "inner_steps"_a,
            "least_violation"_a)
        .def("restrict", &KernelDual<T>::restrict, "variables"_a.noconvert(), "rows"_a.noconvert(), "source"_a)
        .def("optimality", &KernelDual<T>::optimality)
        .def_prop_ro("s", &KernelDual<T>::s, nb::rv_policy::automatic)
        .def_prop_ro("f", &KernelDual<T>::f, nb::rv_policy::automatic)
        .def_prop_ro("norm", &KernelDual<T>::norm)
        .def_prop_ro("moved", &KernelDual<T>::moved)
        .def_prop_ro("iterations", &KernelDual<T>::iterations)
        .def_prop_ro("steps", &KernelDual<T>::steps)
        .def_prop_ro("computed", &KernelDual<T>::computed)
        .def_prop_ro("capacity", &KernelDual<T>::capacity);
}

}  // namespace

void bind_kernel_dual(nb::module_& m) {
    m.attr("FEATURES") = FEATURES;
    m.attr("SUM_ROWS") = SUM_ROWS;
    m.attr("TILE_COLUMNS") = TILE_COLUMNS;
    m.attr("LARGE_SET") = LARGE_SET;
    bind_kind<float>(m, "KernelBlock32", "KernelDual32");
    bind_kind<double>(m, "KernelBlock64", "KernelDual64");
}
