"""The end of each command's help: examples, and what they need to be understood."""

from __future__ import annotations

GENERAL = """examples:
  cutsvm demo                                  train on synthetic data, and compare
  cutsvm check train.svm                       report on a data file and its bad lines
  cutsvm convert train.csv.gz train.store      a store, for data larger than memory
  cutsvm append train.store new.csv            more rows for it
  cutsvm train -c 10 train.svm                 train, write train.svm.model
  cutsvm path train.svm -v 5                   find the best C
  cutsvm predict test.svm train.svm.model out  accuracy, and one prediction a line in `out`
"""
COMPLETION = """examples:
  cutsvm completion bash > ~/.local/share/bash-completion/completions/cutsvm
  cutsvm completion zsh > ~/.zsh/_cutsvm        with `fpath+=~/.zsh` before `compinit` in ~/.zshrc
  cutsvm completion tcsh >> ~/.tcshrc

A new shell then completes commands, options, their choices and files after the Tab key.
"""
TRAIN = """examples:
  cutsvm train train.svm                          writes train.svm.model
  cutsvm train -c 0.1 -w1 5 train.svm my.model    class 1 costs five times as much
  cutsvm train -v 5 -c 10 train.svm.gz            accuracy by cross-validation, writes nothing
  cutsvm train --loss logistic train.svm          logistic regression: predict -b 1 writes probabilities
  cutsvm train --task regress -p 0.1 train.svm    labels are numbers: predict them to within 0.1
  cutsvm train --task quantile --quantile 0.9 train.svm    what 90 % of the labels are below
  cutsvm train --task oneclass --nu 0.05 train.svm         outliers: about 5 % of the rows
  cutsvm train -s 2 -B 1 -c 10 train.svm          as LIBLINEAR's train
  cutsvm train -C -s 2 train.svm                  as LIBLINEAR: the best C by cross-validation
  cutsvm train -wyes 2 train.csv                  labels may be text
  cutsvm train train.svm --valid test.svm         and the accuracy on other rows
  cutsvm train --task rank train.svm              orders the rows of each qid: by their labels
  cutsvm train --task rank -v 5 --metric ndcg@10 train.svm    NDCG of the first 10 places
  cutsvm train --task kernel --gamma 2 train.svm  a kernel machine, here with the RBF kernel
  cutsvm train data/*.parquet my.model            rows from several files; a folder does as well
  cutsvm train data --exclude id --scale standard my.model     columns of tables
  cat train.csv | cutsvm train --format csv - my.model         standard input
  cutsvm train --max-time 60 --json train.svm     the best model after a minute, result as JSON
  cutsvm train --memory 2GB train.store           rows stay on disk (cutsvm convert makes stores)
  cutsvm train --cluster tcp://host:8786 'data/*.parquet' my.model     on the workers of a Dask cluster
  cutsvm train --report train.html train.svm      the model as an HTML page: certificate, plots, measures
  cutsvm train --checkpoint ck train.store        after a kill the same command resumes from ck

DATA is svmlight files, also compressed (.gz .bz2 .xz .zst), tables (.csv .tsv .parquet .arrow .feather), .npy, .npz, a
folder of them, or a store. -e is the relative gap at which to stop: with 1e-3 the objective is proven to be within
0.1 % of the best possible one. Ctrl-C writes the best model so far.
"""
CONVERT = """examples:
  cutsvm convert train.svm.gz train.store                  svmlight, plain or compressed
  cutsvm convert part1.svm part2.svm train.store           several files, of any format
  cutsvm convert data train.store --exclude id             a folder of tables, without a column
  cutsvm convert train.parquet train.store --label click   a table, and which column has the labels

STORE is a folder. A store of that name is replaced once the new one is complete; any other folder is left alone. If the
command is interrupted, the old store is as it was; if there was none, run it again.
"""
APPEND = """examples:
  cutsvm append train.store new.svm                        rows of the same features; labels may be new
  cutsvm append train.store monday.parquet tuesday.parquet

The rows get the columns and the type of the store. If the command is interrupted, the store is as it was.
"""
DELETE = """examples:
  cutsvm delete train.store --rows 10:20,35                rows 10 to 19, and row 35; the first is row 0
  cutsvm delete train.store --filter "label == 3"
  cutsvm delete train.store --filter "age > 90 and qid in [4, 7]"

Deleted rows stay on disk until `cutsvm compact STORE`, and nothing reads them. The rows behind them have smaller
numbers from then on.
"""
PREDICT = """examples:
  cutsvm predict test.svm train.svm.model             accuracy only
  cutsvm predict test.svm train.svm.model out.txt     and one label a line in out.txt
  cutsvm predict --scores test.svm train.svm.model -  decision values to standard output
  cutsvm predict -b 1 test.svm train.svm.model out    probabilities, of models trained with --loss logistic
  cutsvm predict data/*.parquet m.model out.parquet --keep id    several files, and a table with their ids
  cutsvm predict --metric ndcg@10 test.svm m.model    NDCG, of models of --task rank

DATA needs no labels, and may have any size: it is read in blocks. Columns of a table are found by name.
MODEL is a model of cutsvm or LIBLINEAR. Models of --task rank and roc write scores, and print the share of pairs in
order or the ROC area; those of ordinal write levels. Models of regress and quantile write numbers, and print their
errors; those of oneclass write 1 (inlier) or -1, and print the share of inliers. Decision values: one per line for
two classes (positive: the larger label), otherwise one per class in ascending order of the labels; those of a kernel
machine are the votes of the class, and a fraction that breaks ties.
"""
PATH = """examples:
  cutsvm path train.svm                            10 values of C chosen from the data
  cutsvm path train.svm --Cs 1e-4:1e4:9 -v 5       from 1e-4 to 1e4, 9 of them; the best by 5 folds
  cutsvm path train.svm --Cs 0.1,1,10 -v 5 --model best.model
  cutsvm path train.svm -v 5 --scoring roc_auc --plot path.png
  cutsvm path --task rank train.svm -v 5           folds keep queries whole
  cutsvm path --task rank train.svm -v 5 --metric ndcg@10
  cutsvm path --task regress -p 0.1 train.svm -v 5 --scoring neg_mean_squared_error

Each C is fitted until its gap is at most -e, and planes are shared: the path takes little more time than its slowest
fit. * marks the C with the best mean over the folds.
"""
