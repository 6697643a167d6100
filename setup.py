from setuptools import setup

setup(cffi_modules=["gbdtmo_core/build_native.py:ffibuilder"])
