// The bound losses of one score per row: labels or targets and weights, checked when made and read in place.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "bindings/matrix.hpp"
#include "core/row_losses.hpp"
#include "core/smooth.hpp"

// A loss together with the arrays that it reads, which live as long as it does.
class RowLoss {
  public:
    // Of two classes: "hinge", "squared_hinge" or "logistic", with a_i = y_i s_i.
    RowLoss(const std::string& name, const Vector<double>& a)
        : loss_(of_labels(name, {view(a)})), owners_{nb::ndarray<>(a.handle())} {}

    // With targets: "tube", "squared_tube" or "huber". requires: s >= 0, epsilon, below, above >= 0.
    RowLoss(const std::string& name, const Vector<double>& t, const Vector<double>& s, double epsilon, double below,
            double above)
        : loss_(of_targets(name, {view(t), view(s), epsilon}, below, above)),
          owners_{nb::ndarray<>(t.handle()), nb::ndarray<>(s.handle())} {
        check(t.shape(0) == s.shape(0), "t and s differ in length");
        check(epsilon >= 0.0 && below >= 0.0 && above >= 0.0, "epsilon, below, above: at least 0 expected");
    }

    // use(loss) with the kind of loss that this is.
    template <class Use>
    decltype(auto) visit(const Use& use) const {
        return std::visit(use, loss_);
    }
    std::int64_t n() const {
        return visit([](const auto& loss) { return loss.size(); });
    }

    // The loss of the rows from begin to end, read where they are.
    RowLoss part(std::int64_t begin, std::int64_t end) const {
        check(0 <= begin && begin <= end && end <= n(), "begin, end: rising, from 0 to n expected");
        RowLoss some = *this;
        std::visit([&](auto& loss) { loss.restrict(begin, end - begin); }, some.loss_);
        return some;
    }

  private:
    using Loss = std::variant<cutsvm::Hinge, cutsvm::SquaredHinge, cutsvm::Logistic, cutsvm::Tube, cutsvm::SquaredTube,
                              cutsvm::Huber>;

    static Loss of_labels(const std::string& name, const cutsvm::Labels& labels) {
        if (name == "hinge") return cutsvm::Hinge{labels};
        if (name == "squared_hinge") return cutsvm::SquaredHinge{labels};
        check(name == "logistic", "name: hinge, squared_hinge or logistic expected");
        return cutsvm::Logistic{labels};
    }
    static Loss of_targets(const std::string& name, const cutsvm::Targets& targets, double below, double above) {
        if (name == "tube") {
            double largest = 0.0;
            for (const double t : targets.t) largest = std::max(largest, std::abs(t));
            return cutsvm::Tube{targets, below, above, largest};
        }
        if (name == "squared_tube") return cutsvm::SquaredTube{targets};
        check(name == "huber", "name: tube, squared_tube or huber expected");
        return cutsvm::Huber{targets};
    }

    Loss loss_;
    nb::ndarray<> owners_[2];
};

using BoundRowLoss = nb::class_<RowLoss>;

template <class Array>
void check_rows(const RowLoss& loss, const Array& array) {
    check(extent(array) == loss.n(), "one entry per row expected");
}

// One row each for offsets, sizes, magnitudes, and one column per shard.
inline cutsvm::ShardSums shard_sums(const Array2DOut<double>& out) {
    check(out.shape(0) == 3, "out: three rows expected");
    const auto shards = extent(out, 1);
    double* const first = out.data();
    return {{first, shards}, {first + shards, shards}, {first + 2 * shards, shards}};
}
