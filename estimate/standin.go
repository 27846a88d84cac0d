package estimate

// CountJSON is a plain count of a quarter of a token a byte.
func CountJSON(raw []byte) int64 { return int64(len(raw)) * 250 }

// Count is CountJSON for text that is not escaped.
func Count(text []byte) int64 { return int64(len(text)) * 250 }
