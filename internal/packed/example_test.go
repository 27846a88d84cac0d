package packed_test

import (
	"bytes"
	"compress/gzip"
	"fmt"

	"github.com/tripmeter/tripmeter/internal/packed"
)

func ExampleUnpack() {
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	fmt.Fprint(w, `{"usage":{"total_tokens":31}}`)
	w.Close()

	whole := packed.Unpack("gzip", body.Bytes(), packed.Limits{}, func(piece []byte) { fmt.Printf("%s\n", piece) })
	fmt.Println(whole)
	// Output:
	// {"usage":{"total_tokens":31}}
	// true
}
