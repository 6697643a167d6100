from setuptools import setup

setup(
    cffi_modules=["gbdtmo_core/build_native.py:ffibuilder"],
    # cffi compiles against the stable ABI, so one wheel serves every version from the oldest supported one.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
