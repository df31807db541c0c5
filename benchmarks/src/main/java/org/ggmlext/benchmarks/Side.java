package org.ggmlext.benchmarks;

import java.util.Map;

/**
 * One side of a comparison: a benchmark method and its parameters.
 *
 * @param label what the table calls it
 * @param benchmark the class that holds the method
 * @param method name of the method
 * @param params values of the class's parameters by name; those that are not named keep the first
 */
record Side(String label, Class<?> benchmark, String method, Map<String, String> params) {
  Side {
    params = Map.copyOf(params);
  }
}
