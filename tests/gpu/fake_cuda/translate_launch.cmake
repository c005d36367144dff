# cmake -DIN=x_launch.cu -DOUT=x_launch.cc -P translate_launch.cmake
# Makes C++ of the one thing in a launch file that is not: kernel<<<...>>>(...).
file(READ "${IN}" text)
string(REGEX REPLACE "([A-Za-z_][A-Za-z_0-9:]*(<[^<>;]*>)?)[ \n]*<<<([^;]*)>>>"
       "::engram::fake_cuda::Launcher(\\1).At(\\3)" text "${text}")
if(text MATCHES "<<<")
  message(FATAL_ERROR "${IN}: a launch that translate_launch.cmake does not understand")
endif()
file(WRITE "${OUT}" "#line 1 \"${IN}\"\n${text}")
