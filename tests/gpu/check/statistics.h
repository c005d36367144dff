#ifndef ENGRAM_TESTS_GPU_CHECK_STATISTICS_H_
#define ENGRAM_TESTS_GPU_CHECK_STATISTICS_H_

#include <cstddef>
#include <vector>

namespace engram::gpu_check {

// Of the samples of one figure; all 0 without samples.
struct Summary {
  size_t samples = 0;
  double median = 0;
  double p10 = 0;  // a tenth of the samples are below
  double p90 = 0;
  double least = 0;
};

// Takes samples in any order. The median of an even number is the mean of the
// middle two.
Summary Summarize(std::vector<double> samples);

// How many launches to put into one sample, so that it lasts about
// `sample_us`: a whole number of rounds over `sets` input sets, at least one
// round and at most `max_launches` (rounded up to a round).
size_t LaunchesPerSample(double launch_us, double sample_us, size_t sets,
                         size_t max_launches);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_STATISTICS_H_
