// tiered.cu: lists of which a part lies in the host's memory: what reads of it give, and pages that come. A compile unit of its own.
#include "tiered/move.cu"
#include "tiered/read.cu"
