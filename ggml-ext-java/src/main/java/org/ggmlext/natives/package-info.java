/**
 * Brings native libraries out of jars and run-time images: finds their manifest, unpacks what it
 * lists into a cache folder, and checks what is there already.
 */
@NullMarked
package org.ggmlext.natives;

import org.jspecify.annotations.NullMarked;
