# Device code: per operator and pair of dtypes (of operands, of result) one image for each kind of target, so that a first call loads no more than it needs.
#
#     kernels/<operator>-<dtypes>.hipfb     all AMD targets, in a bundle that AMD's runtime picks from
#     kernels/<operator>-<dtypes>.hipfb_6   the generic ones among them, which come in code-object version 6 only: older runtimes know neither
#     kernels/<operator>-<dtypes>.ptx_75    PTX, for compute capability 7.5 and newer; ptx_80 where a 16-bit type takes part
#     kernels/<operator>-<dtypes>.sm_90     machine code for 9.0, where --with-cuda-targets asks for it
#
# <dtypes> is "bfloat16", or "bfloat16_float32" where the result's dtype is another. The images are files of the build tree. kernels/images.def lists them, for kernels/embed.S and lib/gpu/images.c.
gpu_sources = $(OPERATORS:%=kernels/%.hip)
EXTRA_DIST += kernels/device.h kernels/elementwise.h kernels/host.h kernels/codegen-limits.txt $(gpu_sources)

if GPU_CODE
# Operators whose results are of their operands' dtype have no others.
same_dtypes = float16 bfloat16 float32 float64
mixed_dtypes = float16_float32 bfloat16_float32 float32_float16 float32_bfloat16
UNMIXED = column_sum copy
gpu_modules = $(foreach operator,$(OPERATORS),$(same_dtypes:%=kernels/$(operator)-%)) \
	$(foreach operator,$(filter-out $(UNMIXED),$(OPERATORS)),$(mixed_dtypes:%=kernels/$(operator)-%))
hip_generic = $(filter %-generic,$(HIP_TARGETS))
hip_images = $(if $(HIP_TARGETS),$(gpu_modules:%=%.hipfb)) $(if $(hip_generic),$(gpu_modules:%=%.hipfb_6))
# PTX for newer capabilities than the first differs by the instructions that round to 16-bit types.
ptx_base = $(firstword $(PTX_TARGETS))
ptx_newer = $(filter-out $(ptx_base),$(PTX_TARGETS))
rounding_modules = $(foreach module,$(gpu_modules),$(if $(findstring float16,$(module)),$(module)))
ptx_images = $(if $(ptx_base),$(gpu_modules:%=%.ptx_$(ptx_base))) \
	$(foreach number,$(ptx_newer),$(rounding_modules:%=%.ptx_$(number)))
sm_images = $(foreach number,$(CUDA_TARGETS),$(gpu_modules:%=%.sm_$(number)))
gpu_images = $(hip_images) $(ptx_images) $(sm_images)

# The formulas need every product and sum as written, and inf and nan.
gpu_flags = -std=c++17 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra
hip_compile = HIP_PLATFORM=amd $(HIPCC) -x hip --offload-device-only -c -nogpuinc -nogpulib $(hip_target_flags) $(gpu_flags) \
	$(HIPCCFLAGS)
# (No warnings for generic targets: they would be the others' once more, and in clang 19 one that version 6 is new.)
hip_target_flags = $(HIP_OPTIONS) $(if $(filter %_6,$@),$(hip_generic:%=--offload-arch=%) -mcode-object-version=6 -w,\
	$(patsubst %,--offload-arch=%,$(filter-out %-generic,$(HIP_TARGETS))))
ptx_compile = $(PTXCC) -x cuda --cuda-device-only -S -nocudainc -nocudalib --cuda-path=/nonexistent $(PTX_VERSION) $(gpu_flags) \
	$(PTXFLAGS)

verbose_hip = $(verbose_hip_@AM_V@)
verbose_hip_ = $(verbose_hip_@AM_DEFAULT_V@)
verbose_hip_0 = @echo "  HIPCC   " $@;
verbose_hip_1 =
verbose_ptx = $(verbose_ptx_@AM_V@)
verbose_ptx_ = $(verbose_ptx_@AM_DEFAULT_V@)
verbose_ptx_0 = @echo "  PTXCC   " $@;
verbose_ptx_1 =
verbose_ptxas = $(verbose_ptxas_@AM_V@)
verbose_ptxas_ = $(verbose_ptxas_@AM_DEFAULT_V@)
verbose_ptxas_0 = @echo "  PTXAS   " $@;
verbose_ptxas_1 =

# Of "kernels/swish-float32.ptx_75": the operator, the dtypes, the number.
image_operator = $(firstword $(subst -, ,$(notdir $(basename $@))))
image_dtypes = $(lastword $(subst -, ,$(notdir $(basename $@))))
image_number = $(lastword $(subst _, ,$(suffix $@)))
image_compile = -DFL_DTYPES=$(image_dtypes) -DFL_OPERAND=$(firstword $(subst _, ,$(image_dtypes))) \
	-DFL_RESULT=$(lastword $(subst _, ,$(image_dtypes))) -MD -MP -MT $@ -MF $@.d -o $@.tmp $(srcdir)/kernels/$(image_operator).hip && \
	mv $@.tmp $@

$(hip_images): Makefile
	$(verbose_hip)$(MKDIR_P) $(@D) && $(hip_compile) $(image_compile)

$(ptx_images): Makefile
	$(verbose_ptx)$(MKDIR_P) $(@D) && $(ptx_compile) --cuda-gpu-arch=sm_$(image_number) $(image_compile)

# Machine code is assembled from the newest PTX that it runs.
$(sm_images): Makefile $(ptx_images)
	$(verbose_ptxas)newest=$(ptx_base); for number in $(ptx_newer); do \
	    test $$number -gt $(image_number) || test ! -f $(basename $@).ptx_$$number || newest=$$number; done; \
	$(PTXAS) -arch=sm_$(image_number) -o $@.tmp $(basename $@).ptx_$$newest && mv $@.tmp $@

# What an image was made from, its compiler writes beside it.
-include $(gpu_images:%=%.d)

kernels/images.def: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && printf '%s\n' $(gpu_images) | $(AWK) -F '[/.-]' '{ \
	    split($$4, kind, "_"); sub(/fb$$/, "", kind[1]); dtypes = split(toupper($$3), dtype, "_"); \
	    printf "FL_IMAGE(%s, %s, %s, %s, %d, \"%s\")\n", $$2, dtype[1], dtype[dtypes], toupper(kind[1]), kind[2], $$0 }' > $@.tmp && \
	mv $@.tmp $@

libfuseline_la_SOURCES += kernels/embed.S
# (addprefix, since automake takes a target that it knows for a rule in place of its own.)
$(addprefix kernels/,embed.lo): kernels/images.def $(gpu_images)
$(addprefix lib/gpu/,libfuseline_la-images.lo): kernels/images.def
CLEANFILES += kernels/images.def $(gpu_images) $(gpu_images:%=%.d) $(gpu_images:%=%.tmp)
endif
