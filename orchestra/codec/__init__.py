"""The codec: model values to canonical bytes and back, their addresses, patches and seals."""
