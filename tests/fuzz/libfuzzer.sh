#!/usr/bin/env bash
# Builds the libFuzzer target of the svmlight text parser with the address and undefined-behaviour sanitizers and runs it.
#   tests/fuzz/libfuzzer.sh [INPUTS [SEED [FOLDER]]]     100,000 inputs by default; FOLDER keeps program, corpus, crashes
# TIMEOUT=60 for a busy machine: libFuzzer takes ten seconds by the clock for a hang.
# Needs clang with libFuzzer (Debian: apt-get install clang libclang-rt-dev libomp-dev).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
inputs=${1:-100000} seed=${2:-1} folder=${3:-$(mktemp -d)}
mkdir -p "$folder/corpus" "$folder/seeds"
program=$folder/svmlight_fuzzer
${CXX:-clang++} -std=c++20 -O2 -g -fopenmp -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -I"$here/../../src" "$here/svmlight_fuzzer.cpp" -o "$program"
# The seeds: a byte of options, then text.
printf '\000+1 qid:4\t3:0.5  1:-2e-1 # c: d\r\n\n-1 qid:4 \r\n 2.5 qid:-9 4000000000:+7' > "$folder/seeds/queries"
printf '\0221 1:1 2:2.5e-3 7:-0\n-1 0:1 3:1e22\n1,2 1:x\n1 3:1 3:2\n' > "$folder/seeds/bad"
printf '\0340.1 qid:a:b 1:123456789012345678901234567890e-20\n7 qid:c 2:.5E+3 9:1.\n' > "$folder/seeds/numbers"
cd "$folder"
# Without libFuzzer's entropic schedule, which with a corpus of thousands takes more time than the parser.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=1:malloc_context_size=5}
"$program" -runs="$inputs" -seed="$seed" -timeout="${TIMEOUT:-10}" -max_len=160 -rss_limit_mb=2048 -dict="$here/svmlight.dict" \
    -entropic=0 -print_final_stats=1 -verbosity="${VERBOSITY:-1}" corpus seeds
