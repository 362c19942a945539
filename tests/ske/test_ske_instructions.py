"""Instructions counted in SASS and PTX: blocks, loops, the path with most work."""

from __future__ import annotations

import pytest

from wavefilt.ske.instructions import listing

SASS = """
	.section	.text.some_kernel,"ax",@progbits
.text.some_kernel:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   ISETP.GE.U32.AND P0, PT, R0, 0x4, PT ;
        /*0020*/               @P0 EXIT ;
        /*0030*/                   ISETP.NE.AND P1, PT, R4, RZ, PT ;
        /*0040*/              @!P1 BRA `(.L_x_2) ;
.L_x_0:
        /*0050*/                   LDG.E.128 R8, desc[UR4][R2.64] ;
        /*0060*/                   FFMA R8, R8, R9, R10 ;
        /*0070*/                   FFMA R8, R8, R9, R10 ;
        /*0080*/                   IMAD.WIDE.U32 R2, R0, 0x10, R2 ;
        /*0090*/               @P2 BRA `(.L_x_0) ;
        /*00a0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00b0*/               @P3 BRA `(.L_x_1) ;
        /*00c0*/                   STS.64 [R3], R8 ;
        /*00d0*/                   LDS.128 R4, [R3] ;
        /*00e0*/                   DFMA R4, R4, R4, R4 ;
.L_x_1:
        /*00f0*/                   STG.E.128 desc[UR4][R2.64], R8 ;
        /*0100*/                   EXIT ;
.L_x_2:
        /*0110*/                   STG.E desc[UR4][R2.64], R8 ;
        /*0120*/                   EXIT ;
.L_x_3:
        /*0130*/                   BRA `(.L_x_3);
"""
PTX = """
.visible .entry some_kernel(
	.param .u64 p0
)
{
	ld.param.u64 	%rd1, [p0];
	mov.u32 	%r1, %tid.x;
	setp.gt.u32 	%p1, %r1, 3;
	@%p1 bra 	$L__BB0_2;
	mul.wide.u32 	%rd2, %r1, 4;
	ld.global.nc.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1];
	fma.rn.f32 	%f5, %f1, %f2, %f3;
	st.shared.v2.f32 	[%r4], {%f5, %f1};
	bar.sync 	0;
	st.global.f32 	[%rd1], %f5;
$L__BB0_2:
	ret;
}
"""


def test_the_path_with_its_loop():
    found = listing(SASS)
    assert found.kind == "SASS"
    once = found.count()
    assert {name: once[name] for name in ("fma", "fma64", "int mul", "int", "barrier")} == {
        "fma": 2,
        "fma64": 1,
        "int mul": 1,
        "int": 2,
        "barrier": 1,
    }
    assert found.bytes() == {"global load": 16, "shared store": 8, "shared load": 16, "global store": 16}
    often = found.count([10])
    assert (often["fma"], often["int"], often["global load"]) == (20, 2, 10)
    with pytest.raises(ValueError, match="2 trip counts are given for 1"):
        found.count([10, 3])


def test_addresses_as_targets_are_read_too():
    """As cuobjdump prints them."""
    places = {".L_x_0": "0x50", ".L_x_1": "0xf0", ".L_x_2": "0x110", ".L_x_3": "0x130"}
    text = SASS
    for label, place in places.items():
        text = text.replace(f"`({label})", place).replace(f"{label}:\n", "")
    assert listing(text).count([7]) == listing(SASS).count([7])


def test_ptx_where_there_is_no_sass():
    found = listing(PTX, "some_kernel")
    assert found.kind == "PTX"
    counts = found.count()
    assert {name: counts[name] for name in ("fma", "int", "int mul", "barrier")} == {
        "fma": 1,
        "int": 1,
        "int mul": 1,
        "barrier": 1,
    }
    assert found.bytes() == {"global load": 16, "shared store": 8, "global store": 4}


def test_a_text_without_the_kernel_is_an_error():
    with pytest.raises(ValueError, match="'other'"):
        listing(PTX, "other")
    with pytest.raises(ValueError, match="no instructions"):
        listing("nothing")
