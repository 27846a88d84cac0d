package estimate

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// pngBase64 is a PNG header of w x h pixels and then noise, size characters long.
func pngBase64(w, h, size int) string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		panic(err)
	}
	head := base64.StdEncoding.EncodeToString(b.Bytes()[:48])
	const noise = "q7Zt/0Xa+9PbLm3R"
	return head + strings.Repeat(noise, max(size-len(head), 0)/len(noise)+1)[:max(size-len(head), 0)/4*4]
}

func encoded(t *testing.T, format string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
	switch format {
	case "png":
		err = png.Encode(&b, img)
	case "gif":
		err = gif.Encode(&b, img, nil)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
