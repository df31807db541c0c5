package org.ggmlext;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/**
 * Dependencies point one way: verification, extensions, the typed API and what loads it, bindings.
 */
class DependencyDirectionsTest {
  private static final String API = "org.ggmlext";
  private static final String EXT = "org.ggmlext.ext..";
  private static final String KIT = "org.ggmlext.kit..";
  private static final String NATIVES = "org.ggmlext.natives..";
  private static final String INTERNAL = "org.ggmlext.internal..";
  private static final String BINDINGS = "org.ggmlext.bindings..";

  private static JavaClasses library;

  @BeforeAll
  static void read() {
    library =
        new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("org.ggmlext");
  }

  @Test
  @DisplayName("Each part of the library is there to be checked")
  void finds() {
    for (String part : List.of("Tensor", "ext.Plan", "kit.OperatorCheck", "natives.NativeCache")) {
      assertThat(library.contain("org.ggmlext." + part)).as(part).isTrue();
    }
  }

  @Test
  @DisplayName("The bindings know nothing of the library")
  void bindings() {
    noClasses()
        .that()
        .resideInAPackage(BINDINGS)
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(API, EXT, KIT, NATIVES, INTERNAL)
        .check(library);
  }

  @Test
  @DisplayName("The typed API knows nothing of extensions, these nothing of verification")
  void layers() {
    noClasses()
        .that()
        .resideInAnyPackage(API, NATIVES, INTERNAL)
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(EXT, KIT)
        .check(library);
    noClasses()
        .that()
        .resideInAPackage(EXT)
        .should()
        .dependOnClassesThat()
        .resideInAPackage(KIT)
        .check(library);
  }

  @Test
  @DisplayName("Loading of libraries knows of ggml's API its exception alone")
  void natives() {
    noClasses()
        .that()
        .resideInAPackage(NATIVES)
        .should()
        .dependOnClassesThat(
            JavaClass.Predicates.resideInAnyPackage(BINDINGS, API, INTERNAL)
                .and(DescribedPredicate.not(JavaClass.Predicates.type(GgmlException.class))))
        .check(library);
  }

  @Test
  @DisplayName("No public signature shows a class of the bindings or of internal packages")
  void signatures() {
    DescribedPredicate<JavaClass> hidden =
        JavaClass.Predicates.resideInAnyPackage(BINDINGS, INTERNAL, NATIVES)
            .as("of the bindings or internal");
    methods()
        .that()
        .arePublic()
        .and()
        .areDeclaredInClassesThat()
        .arePublic()
        .and()
        .areDeclaredInClassesThat()
        .resideInAnyPackage(API, EXT, KIT)
        .should()
        .notHaveRawReturnType(hidden)
        .andShould()
        .notHaveRawParameterTypes(
            DescribedPredicate.describe(
                "with one " + hidden.getDescription(), types -> types.stream().anyMatch(hidden)))
        .check(library);
  }

  @Test
  @DisplayName("One place makes upcall stubs: each lives until the process ends")
  void upcallStubs() {
    noClasses()
        .that()
        .resideOutsideOfPackages(BINDINGS, "org.ggmlext.internal.callback..")
        .should()
        .callMethod(
            Linker.class,
            "upcallStub",
            MethodHandle.class,
            FunctionDescriptor.class,
            Arena.class,
            Linker.Option[].class)
        .check(library);
  }
}
