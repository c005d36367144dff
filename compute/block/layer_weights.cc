#include "compute/block/layer_weights.h"

#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/number_formats.h"
#include "core/model/safetensors.h"

namespace engram {

absl::StatusOr<GateWeights> ReadGateWeights(const EngramConfig& config,
                                            const LayerTensors& tensors) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint16_t> q,
                          CopyTensor<uint16_t>(tensors.q_weight));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint16_t> k,
                          CopyTensor<uint16_t>(tensors.k_weight));
  const size_t wanted = size_t{config.hc_mult} * config.dim;
  if (q.size() != wanted || k.size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        tensors.q_weight.name, " and ", tensors.k_weight.name, " have ",
        q.size(), " and ", k.size(), " values, must have ", wanted));
  }
  GateWeights gate;
  gate.hc_mult = config.hc_mult;
  gate.dim = config.dim;
  gate.norm_eps = static_cast<float>(config.norm_eps);
  gate.weight.resize(wanted);
  for (size_t i = 0; i < wanted; ++i) {
    gate.weight[i] = Bf16ToFloat(q[i]) * Bf16ToFloat(k[i]);
  }
  return gate;
}

absl::StatusOr<WkvWeights> ReadWkvWeights(const LayerTensors& tensors) {
  const TensorView& weight = tensors.wkv_weight;
  WkvWeights wkv;
  ENGRAM_ASSIGN_OR_RETURN(wkv.codes, PageBuffer::Allocate(weight.bytes.size()));
  ENGRAM_RETURN_IF_ERROR(weight.file->Guarded([&] {
    std::memcpy(wkv.codes.bytes().data(), weight.bytes.data(),
                weight.bytes.size());
  }));
  ENGRAM_ASSIGN_OR_RETURN(wkv.scales, CopyTensor<uint8_t>(tensors.wkv_scale));
  return wkv;
}

Projection::Weights WkvWeights::View(const EngramConfig& config) const {
  Projection::Weights weights;
  weights.in = config.wkv_in();
  weights.out = config.wkv_out();
  weights.codes = {reinterpret_cast<const uint8_t*>(codes.bytes().data()),
                   codes.bytes().size()};
  weights.scales = scales;
  return weights;
}

}  // namespace engram
