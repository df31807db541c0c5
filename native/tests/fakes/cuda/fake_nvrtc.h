#pragma once
// A compiler without a language, libnvrtc.so.13 for tests. It knows `extern "C" __global__ void name(parameters)`, #error and #warning.

extern "C" {

// As they come: 75, 80, 90
void fake_nvrtc_set_architectures(const int * architectures, int n);
// Of the latest compilation, each followed by a blank
const char * fake_nvrtc_options();
}
