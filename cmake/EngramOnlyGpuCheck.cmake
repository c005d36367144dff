# The part of the tree that engram-gpu-check is made of (tests/gpu), for a build
# with few dependencies.
if(NOT ENGRAM_CUDA_ENABLED)
  message(FATAL_ERROR "ENGRAM_ONLY_GPU_CHECK needs the GPU code; set ENGRAM_CUDA=ON to see what is missing")
endif()
foreach(folder
    core/base core/model core/gpu
    compute/hash compute/dequant compute/project compute/gate compute/block
    tests/testing tests/gpu)
  add_subdirectory(${folder})
endforeach()
