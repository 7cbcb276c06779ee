#!/bin/sh
# Recreates the files of this folder. Run it in the root of the repository: TANDEM=target/release/tandem results/gap/recreate.sh
set -eu
tandem=${TANDEM:-tandem}

# gap MACHINE NAME OPTIONS...: p99 and bounds of every policy at 30, 50, 70, 80 and 90 % of the highest rate at which any scheduler is stable
gap() {
    file=results/gap/$1/$2.csv
    case $1 in
        8-cpus) on="--cpus 8 --gpus 0" policies=cpu-only,stealing-adaptive,edf,least-slack,predictive,few-to-many,delayed-prediction,tail ;;
        14-cpus-gpu) on="--cpus 14 --gpus 1" policies=greedy,combined,tail ;;
        14-cpus-gpu-single) on="--cpus 14 --gpus 1" policies=stealing,mct,stealing-adaptive,combined,tail ;;
    esac
    mkdir -p results/gap/$1
    shift 2
    # The speed-ups on 1 to 8 workers are assumed: docs/reproduced/tatikonda-fig4-latency-quiet-tandem.csv, with 3, 5 and 7 interpolated.
    options="$* $on --set speed-up=1,1.71,2.4,3.1,3.7,4.3,4.8,5.2 --estimates oracle --what gap -o $work"
    $tandem simulate $options --policy mct --rate 1 --num-queries 100 --seeds 1 >/dev/null
    rates=$(awk -F, '$1 == "mct" { for (load = 3; load <= 9; load++) if (load != 4 && load != 6) printf("%s%.0f", (load == 3 ? "" : ","), load / 10 * $2 / $3) }' $work/gap.csv)
    $tandem simulate $options --policy $policies --rate "$rates" --num-queries 20000 --seeds 1:5 >/dev/null
    mv $work/gap.csv $file
}

for workload in ${WORKLOADS-enwiki-tb05 synthetic-gov2 synthetic-1m}; do
    traced=traces/$workload-h200.workload.csv.zst
    work=target/gap/$workload
    mkdir -p $work
    # Without batch costs, the GPU answers one query at a time.
    zstd -dcq $traced | grep -v '^# batches_gpu' >$work/single.workload.csv
    for mode in or and; do
        gap 8-cpus $workload-$mode --workload $traced --mode $mode
        gap 14-cpus-gpu $workload-$mode --workload $traced --mode $mode
        gap 14-cpus-gpu-single $workload-$mode --workload $work/single.workload.csv --mode $mode
    done
    if [ $workload = synthetic-gov2 ]; then
        priority="--priority interactive=20ms:0.8,batch=2s:0.2"
        gap 8-cpus $workload-or-priorities --workload $traced $priority
        gap 14-cpus-gpu $workload-or-priorities --workload $traced $priority
        gap 14-cpus-gpu-single $workload-or-priorities --workload $work/single.workload.csv $priority
    fi
done

# The costs of the executors of Ding et al. on the Wikipedia slice, as `tandem reproduce ding-costs` measured them on an H100: one query at a time.
work=target/gap/published
mkdir -p $work
for mode in or and; do
    gap 8-cpus published-$mode --workload traces/ding-published-enwiki-tb05-h100.workload.csv.zst --mode $mode
    gap 14-cpus-gpu-single published-$mode --workload traces/ding-published-enwiki-tb05-h100.workload.csv.zst --mode $mode
done

# rates NAME OPTIONS...: the rates that keep the 99.9th percentile within a deadline on eight CPU workers
rates() {
    file=results/gap/objective/$1.csv
    shift
    $tandem simulate "$@" --cpus 8 --gpus 0 --set speed-up=1,1.71,2.4,3.1,3.7,4.3,4.8,5.2 --estimates oracle --objective p99.9 --what capacity \
        --policy cpu-only,predictive,delayed-prediction,few-to-many,tail -o target/gap/objective >/dev/null
    mkdir -p results/gap/objective
    mv target/gap/objective/capacity.csv $file
}

rates synthetic-gov2-or-12ms --workload synthetic-gov2-h200 --mode or --deadline-ms 12
rates synthetic-gov2-or-8ms --workload synthetic-gov2-h200 --mode or --deadline-ms 8
rates synthetic-gov2-and-8ms --workload synthetic-gov2-h200 --mode and --deadline-ms 8
rates enwiki-tb05-or-300us --workload enwiki-tb05-h200 --mode or --deadline-ms 0.3
rates enwiki-tb05-or-200us --workload enwiki-tb05-h200 --mode or --deadline-ms 0.2
