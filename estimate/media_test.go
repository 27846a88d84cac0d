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

// inLines breaks base64 after 76 characters, as MIME does.
func inLines(s, end string) string {
	var b strings.Builder
	for ; len(s) > 76; s = s[76:] {
		b.WriteString(s[:76] + end)
	}
	return b.String() + s
}

func encodedImage(t *testing.T, format string, w, h int) []byte {
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

// This test reads the size of an image from its first bytes, and only those.
func TestTheSizeOfAnImageIsReadFromItsFirstBytes(t *testing.T) {
	for _, format := range []string{"png", "gif", "jpeg"} {
		for _, size := range [][2]int{{1, 1}, {640, 480}, {3, 2000}} {
			data := encodedImage(t, format, size[0], size[1])
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				_, w, h := payload(enc.EncodeToString(data)).header()
				if w != int64(size[0]) || h != int64(size[1]) {
					t.Errorf("%s of %v: read %d x %d", format, size, w, h)
				}
			}
		}
	}
	// A JPEG with a thumbnail and a colour profile of 400 kB in front of its size.
	data := encodedImage(t, "jpeg", 640, 480)
	long := append([]byte{}, data[:2]...)
	for range 7 {
		long = append(long, 0xff, 0xe2, 0xff, 0xff)
		long = append(long, make([]byte, 0xffff-2)...)
	}
	long = append(long, data[2:]...)
	if _, w, h := payload(base64.StdEncoding.EncodeToString(long)).header(); w != 640 || h != 480 {
		t.Errorf("JPEG with a long head: read %d x %d", w, h)
	}
	// WebP, by RFC 9649: lossy, lossless and extended, 640 x 480.
	for name, chunk := range map[string]string{
		"VP8 ": "\x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x80\x02\xe0\x01",
		"VP8L": "\x00\x00\x00\x00\x2f\x7f\xc2\x77\x00\x00\x00\x00\x00\x00",
		"VP8X": "\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x02\x00\xdf\x01\x00",
	} {
		file := "RIFF\x00\x00\x00\x00WEBP" + name + chunk
		if f, w, h := payload(base64.StdEncoding.EncodeToString([]byte(file))).header(); f != formatWebP || w != 640 || h != 480 {
			t.Errorf("WebP %s: read %d x %d", name, w, h)
		}
	}
	// A header that is cut short or false gives no size.
	for _, data := range []string{"", "\x89PNG", "GIF89a", "\xff\xd8\xff", "\xff\xd8\xff\xe0\x00\x00", "\xff\xd8\xff\xe0\x00\x01", "RIFFxxxxWEBPVP8X", "RIFFxxxxWEBPVP9Zxxxxxxxxxxxxxxxxxx"} {
		if _, w, h := payload(base64.StdEncoding.EncodeToString([]byte(data))).header(); w != 0 || h != 0 {
			t.Errorf("%q: read %d x %d", data, w, h)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("iVBORw0KGgoAAAANSUhEUgAAAoAAAAHg")
	f.Add("/9j/4AAQSkZJRgABAQAAAQABAAD/")
	f.Add("UklGRgAAAABXRUJQVlA4WAoAAAA=")
	f.Fuzz(func(t *testing.T, s string) {
		_, w, h := payload(s).header()
		if w < 0 || h < 0 {
			t.Fatalf("%d x %d", w, h)
		}
		var sums imageSums
		sums.add(w, h, false)
		sums.add(h, w, true)
		for _, model := range []string{"gpt-4o", "gpt-5-mini", "gpt-5.4", "claude-3-opus", "claude-opus-4-7", "gemini-2.5-pro", ""} {
			if n := sums.tokens(model); n <= 0 || n > 1<<40 {
				t.Fatalf("%s: %d tokens for %d x %d", model, n, w, h)
			}
		}
		// at agrees with the decoder of the standard library.
		whole, err := base64.StdEncoding.DecodeString(s)
		if err != nil || strings.ContainsAny(s, "\r\n") {
			return
		}
		for i, want := range whole {
			if got, ok := payload(s).at(i); !ok || got != want {
				t.Fatalf("byte %d is %d, %v; want %d", i, got, ok, want)
			}
		}
		if _, ok := payload(s).at(len(whole)); ok && !strings.Contains(s, "=") {
			t.Fatal("a byte past the end")
		}
	})
}

// The figures that the providers' own pages give.
func TestImagesCostWhatTheMakersPublish(t *testing.T) {
	for _, c := range []struct {
		model string
		w, h  int64
		low   bool
		want  int64
	}{
		// OpenAI vision guide.
		{"gpt-4o", 1024, 1024, false, 765},
		{"gpt-4o", 2048, 4096, false, 1105},
		{"gpt-4o", 4096, 8192, true, 85},
		{"gpt-4o-mini", 1024, 1024, false, 2833 + 4*5667},
		{"gpt-5", 1024, 1024, false, 70 + 4*140},
		{"o1", 512, 512, false, 75 + 150},
		{"gpt-4.1-mini", 1024, 1024, false, 1659},    // 1024 x 1.62
		{"gpt-4.1-mini", 1800, 2400, false, 2353},    // 1452 x 1.62
		{"gpt-5-nano", 1024, 1024, false, 2520},      // 1024 x 2.46
		{"o4-mini-2025-04-16", 32, 32, false, 2},     // 1 x 1.72
		{"gpt-5.4", 1024, 1024, false, 1229},         // 1024 x 1.2
		{"gpt-5.5", 2048, 2048, false, 3000},         // 2500 x 1.2
		{"openai/gpt-4o", 1024, 1024, false, 765},    //
		{"ft:gpt-4o:org::x", 1024, 1024, false, 765}, //
		{"unheard-of", 1024, 1024, false, 765},       //
		// Anthropic vision page, of 2025 and of 2026.
		{"claude-3-5-sonnet-20241022", 200, 200, false, 54},
		{"claude-3-opus", 1000, 1000, false, 1334},
		{"claude-3-opus", 1092, 1092, false, 1590},
		{"claude-sonnet-4-6", 1000, 1000, false, 1296},
		{"claude-opus-4-7", 1000, 1000, false, 1296},
		{"anthropic/claude-opus-4.7", 1920, 1080, false, 2691},
		{"us.anthropic.claude-opus-4-7-v1:0", 1920, 1080, false, 2691},
		// Gemini, "Understand and count tokens".
		{"gemini-2.5-flash", 384, 384, false, 258},
		{"gemini-2.0-flash", 960, 540, false, 1548},
		{"google/gemini-2.5-flash", 10, 10, false, 258},
		// As recorded: one price for every size.
		{"gemini-2.5-flash", 960, 540, false, 258},
		{"gemini-3-flash-preview", 300, 300, false, 1089},
		// Amazon Nova, "Image understanding": about 800, 1300, 1800, 2400 and 2600.
		{"us.amazon.nova-pro-v1:0", 900, 450, false, 774},
		{"us.amazon.nova-pro-v1:0", 800, 400, false, 769},
		{"us.amazon.nova-pro-v1:0", 900, 900, false, 1299},
		{"us.amazon.nova-pro-v1:0", 1400, 900, false, 1823},
		{"us.amazon.nova-pro-v1:0", 900, 1800, false, 2348},
		{"us.amazon.nova-pro-v1:0", 1300, 1300, false, 2439},
		// Recorded: 1,247 and 1,820.
		{"us.amazon.nova-pro-v1:0", 597, 566, false, 1289},
		{"us.amazon.nova-pro-v1:0", 540, 360, false, 1809},
		// Recorded: 729 for both.
		{"meta-llama/llama-4-scout-17b-16e-instruct", 597, 566, false, 725},
		{"meta-llama/llama-4-scout-17b-16e-instruct", 540, 360, false, 725},
		// Recorded: a picture of 128 x 128.
		{"gpt-4.1-nano", 128, 128, false, 40},
		{"claude-haiku-4-5", 128, 128, false, 25},
		{"pixtral-12b", 128, 128, false, 30},
		{"pixtral-12b-2409", 1024, 1024, false, 38 * 37},
		{"us.meta.llama4-maverick-17b-instruct-v1:0", 640, 480, false, 1560},
		{"granite-vision-3.3", 640, 480, false, 785},
	} {
		var s imageSums
		s.add(c.w, c.h, c.low)
		if got := s.tokens(family(c.model)); got != c.want {
			t.Errorf("%s, %d x %d, low %v: %d tokens, want %d", c.model, c.w, c.h, c.low, got, c.want)
		}
	}
	// The limits hold for every shape.
	for _, size := range [][2]int64{{1, 1}, {1, 1 << 30}, {1 << 30, 1}, {1 << 30, 1 << 30}, {5000, 3000}, {1569, 1569}, {100_000, 33}} {
		var s imageSums
		s.add(size[0], size[1], false)
		if s.patch1536 > 1536 || s.patch2500 > 2500 || s.patch1568 > 1568 || s.patch4784 > 4784 || s.pixel750 > 1600 || s.patch1536 < 1 || s.tiles < 1 || s.tiles > 8 {
			t.Errorf("%v: %+v", size, s)
		}
	}
}

// An image inside a body is charged as an image, with any size in bytes and in
// any place.
func TestADataURLIsMediaWhereverItStands(t *testing.T) {
	image := pngBase64(1024, 1024, 2_500_000)
	url := "data:image/png;base64," + image
	escaped := strings.ReplaceAll(url, "/", `\/`)
	n := 0
	for name, body := range map[string]string{
		"chat":              `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"` + url + `","detail":"high"}}]}]}`,
		"chat, short form":  `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":"` + url + `"}]}]}`,
		"escaped slashes":   `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + escaped + `"}}]}]}`,
		"capitals":          `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"DATA:Image/PNG;Base64,` + image + `"}}]}]}`,
		"parameters":        `{"model":"gpt-4o","messages":[{"role":"user","content":[{"image_url":{"url":"data:image/png;name=a.png;base64,` + image + `"}}]}]}`,
		"as content":        `{"model":"gpt-4o","messages":[{"role":"user","content":"` + url + `"}]}`,
		"as text":           `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"text","text":"` + url + `"}]}]}`,
		"responses":         `{"model":"gpt-4o","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + url + `","detail":"auto"}]}]}`,
		"responses, result": `{"model":"gpt-4o","input":[{"type":"image_generation_call","id":"1","result":"` + image + `"}]}`,
		"tool output":       `{"model":"gpt-4o","input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"` + url + `"}}]}`,
		"Ollama":            `{"model":"gpt-4o","messages":[{"content":"hi","images":["` + image + `"]}]}`,
		"Ollama, generate":  `{"model":"gpt-4o","prompt":"hi","images":["` + image + `"]}`,
		"Bedrock":           `{"modelId":"gpt-4o","messages":[{"content":[{"image":{"format":"png","source":{"bytes":"` + image + `"}}}]}]}`,
		"tool arguments":    `{"model":"gpt-4o","messages":[{"content":[{"type":"tool_use","input":{"picture":"` + url + `"}}]}]}`,
		"tool message":      `{"model":"gpt-4o","messages":[{"role":"tool","tool_call_id":"x","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}]}`,
		"tool result, deep": `{"model":"gpt-4o","messages":[{"content":[{"type":"tool_result","content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}]}]}]}`,
		"function output":   `{"model":"gpt-4o","input":[{"type":"function_call_output","call_id":"1","output":[{"type":"input_image","image_url":"` + url + `"},{"type":"input_text","text":"ok"}]}]}`,
		"function response": `{"model":"gpt-4o","contents":[{"parts":[{"functionResponse":{"name":"f","response":{"ok":true},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + image + `"}}]}}]}]}`,
		"in the response":   `{"model":"gpt-4o","contents":[{"parts":[{"functionResponse":{"name":"f","response":{"shot":{"mimeType":"image/png","data":"` + image + `"}}}}]}]}`,
		"no type":           `{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:;base64,` + image + `"}}]}]}`,
		"no image type":     `{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:application/octet-stream;base64,` + image + `"}}]}]}`,
		"wrong type":        `{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:text/plain;base64,` + image + `"}}]}]}`,
		"odd parameters":    `{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;charset=utf-8;name=\"a b.png\"; base64,` + image + `"}}]}]}`,
		"blank before":      `{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":" data:image/png;base64,` + image + `"}}]}]}`,
		"lines":             `{"model":"gpt-4o","messages":[{"content":[{"type":"image","source":{"data":"` + inLines(image, `\n`) + `"}}]}]}`,
		"lines, CRLF":       `{"model":"gpt-4o","messages":[{"content":[{"type":"image","source":{"data":"` + inLines(image, `\r\n`) + `"}}]}]}`,
		"escaped plus":      `{"model":"gpt-4o","messages":[{"content":[{"type":"image","source":{"data":"` + strings.ReplaceAll(image, "+", `\u002b`) + `"}}]}]}`,
		"no URL":            `{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"` + image + `"}}]}]}`,
		"URL alphabet":      `{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.NewReplacer("+", "-", "/", "_").Replace(image) + `"}}]}]}`,
		"new name":          `{"model":"gpt-4o","messages":[{"content":[{"type":"hologram","hologram":{"of":"` + url + `"}}]}]}`,
		"new name, bare":    `{"model":"gpt-4o","messages":[{"content":[{"type":"hologram","hologram":{"of":"` + image + `"}}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := Inspect([]byte(body), Options{})
			want := int64(765)
			switch name {
			case "no URL", "odd parameters", "blank before": // the size cannot be read
				want = 255
			}
			if !r.Understood || r.Images != 1 || r.ImageTokens != want {
				t.Errorf("understood %v, %d images of %d tokens; want one of %d", r.Understood, r.Images, r.ImageTokens, want)
			}
			if r.Input > 1000 {
				t.Errorf("%d tokens of input: the image was counted as text", r.Input)
			}
			if r.Chars > 1000 {
				t.Errorf("%d characters: the image was counted as text", r.Chars)
			}
			rule := Rule{Charge: ChargeEstimate, PromptByChars: true, ImageTokens: 765}
			if p := rule.Price(r, 0); p.Input > 1000 {
				t.Errorf("priced by characters: %d tokens", p.Input)
			}
		})
		n++
	}
	if n == 0 {
		t.Fatal("nothing was tried")
	}
}

// Their own shapes and their own rules.
func TestImagesOfEveryInterfaceArePriced(t *testing.T) {
	image := pngBase64(1000, 1000, 2_500_000)
	for body, want := range map[string]int64{
		`{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}]}`:                                    1296,
		`{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":[{"type":"image","source":{"data":"` + image + `"}}]}]}`:                                                                             1296,
		`{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}]}]}`: 1296,
		`{"model":"gemini-2.5-pro","contents":[{"parts":[{"inlineData":{"data":"` + image + `","mimeType":"image/png"}}]}]}`:                                                                                    258,
		`{"model":"gemini-2.5-pro","contents":[{"parts":[{"inline_data":{"mime_type":"image/png","data":"` + strings.NewReplacer("+", "-", "/", "_").Replace(image) + `"}},{"text":"x"}]}]}`:                    258,
		`{"contents":[{"parts":[{"inlineData":{"data":"` + image + `","mimeType":"image/png"}},{"inlineData":{"data":"` + image + `","mimeType":"image/png"}}]}],"model":"gemini-2.5-pro"}`:                     2 * 258,
		`{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}]}]}`:                                                     19 * 19,
		`{"model":"claude-sonnet-4-6","messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"file_1"}}]}]}`:                                                                   19 * 19,
		`{"model":"claude-sonnet-4-6","messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"` + image + `"}]}]}`:                                                                       0,
		`{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"detail":"low","url":"data:image/png;base64,` + image + `"}}]}]}`:                                             85,
		`{"model":"gpt-4o","input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,` + image + `","detail":"low"}]}]}`:                                                                    85,
		`{"model":"gpt-4o","messages":[{"content":[{"image_url":{"url":"data:image/png;base64,` + image + `","detail":"low"}},{"image_url":{"url":"data:image/png;base64,` + image + `"}}]}]}`:                  85 + 765,
		`{"model":"gpt-4o","messages":[{"content":[{"image_url":{"url":"data:image/png;base64,` + image + `"},"image_url":{"url":"data:image/png;base64,` + image + `"}}]}]}`:                                   765,
		`{"model":"gpt-4o","messages":[{"content":[{"image_url":{"url":"data:image/png;base64,` + image + `"}}],"content":"only this"}]}`:                                                                       0,
		`{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;utf8,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22%3E%3C/svg%3E"}}]}]}`:                         255,
		`{"model":"gpt-4o","messages":[{"content":[{"type":"image_url","image_url":{"url":"https:\/\/example.org\/a.png"}}]}]}`:                                                                                 255,
		`{"model":"gpt-4o","messages":[{"content":[{"type":"input_image","file_id":"file-1"}]}]}`:                                                                                                               255,
	} {
		r := Inspect([]byte(body), Options{})
		if !r.Understood || r.ImageTokens != want || r.MediaTokens != 0 || r.Input > want+100 {
			t.Errorf("%.120s...: understood %v, %d image tokens of %d, media %d; want %d", body, r.Understood, r.ImageTokens, r.Input, r.MediaTokens, want)
		}
	}
}

// Payloads in parts of every kind, and beside the
// messages, are bounded; those that no interface reads cost nothing.
func TestPayloadsOfEveryKindAreBounded(t *testing.T) {
	noise := strings.Repeat("q7Zt/0Xa+9PbLm3R", 2_500_000/16)
	pdf := "JVBERi0xLjcK" + noise
	image := "data:image/png;base64," + pngBase64(1024, 1024, 2_500_000)
	n := 0
	for name, body := range map[string]string{
		"input_file":         `{"input":[{"content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}]}]}`,
		"file":               `{"messages":[{"content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}]}]}`,
		"file, bare":         `{"messages":[{"content":[{"type":"file","file":{"filename":"a.pdf","file_data":"` + pdf + `"}}]}]}`,
		"document":           `{"system":"s","messages":[{"content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + pdf + `"}}]}]}`,
		"document, Bedrock":  `{"messages":[{"content":[{"document":{"format":"pdf","name":"a","source":{"bytes":"` + pdf + `"}}}]}],"inferenceConfig":{}}`,
		"input_audio":        `{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"` + noise + `","format":"mp3"}}]}]}`,
		"input_audio as URL": `{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"data:audio/wav;base64,` + noise + `","format":"wav"}}]}]}`,
		"inlineData, sound":  `{"contents":[{"parts":[{"inlineData":{"mimeType":"audio/ogg","data":"` + noise + `"}}]}],"model":"gemini-2.5-pro"}`,
		"inlineData, film":   `{"contents":[{"parts":[{"inlineData":{"mimeType":"video/mp4","data":"` + noise + `"}}]}],"model":"gemini-2.5-pro"}`,
		"inlineData, text":   `{"contents":[{"parts":[{"inlineData":{"mimeType":"text/plain","data":"` + noise + `"}}]}],"model":"gemini-2.5-pro"}`,
		"video_url":          `{"messages":[{"content":[{"type":"video_url","video_url":{"url":"data:video/mp4;base64,` + noise + `"}}]}]}`,
		"files in a message": `{"messages":[{"content":"hi","files":[{"type":"image","url":"` + image + `"}]}]}`,
		"files beside":       `{"messages":[{"content":"hi"}],"files":[{"type":"image","url":"` + image + `"}]}`,
		"metadata beside":    `{"messages":[{"content":"hi"}],"metadata":{"avatar":"` + image + `"}}`,
		"stray string":       `{"messages":[{"content":"hi"}],"avatar":"` + image + `"}`,
		"unknown body":       `{"avatar":"` + image + `","size":3}`,
		"unknown body, deep": `{"avatars":[{"of":["` + image + `"]}],"size":3}`,
		"unknown body, bare": `{"avatar":"` + noise + `"}`,
		"tools":              `{"messages":[{"content":"hi"}],"tools":[{"icon":"` + image + `"}]}`,
		"name":               `{"messages":[{"content":"hi","name":"` + image + `"}]}`,
		"system":             `{"system":"` + image + `","messages":[]}`,
		"cut short":          `{"messages":[{"content":[{"image_url":{"url":"` + image,
		"embeddings":         `{"model":"embed","input":["` + image + `"]}`,
		"multimodal embed":   `{"model":"embed","input":[{"content":[{"type":"image_base64","image_base64":"` + image + `"}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := Inspect([]byte(body), Options{})
			if r.Input >= 30_000 {
				t.Errorf("%d tokens of input, of which media %d, images %d: over a limit of 30,000", r.Input, r.MediaTokens, r.ImageTokens)
			}
			if r.Chars > 1000 {
				t.Errorf("%d characters of text", r.Chars)
			}
			if strings.HasSuffix(name, "beside") && r.Images+r.MediaTokens != 0 {
				t.Errorf("charged for what is beside the prompt: %d images, %d tokens", r.Images, r.MediaTokens)
			}
		})
		n++
	}
	if n == 0 {
		t.Fatal("nothing was tried")
	}
}

// What only resembles a payload is prompt.
func TestPlainTextStaysText(t *testing.T) {
	for _, text := range []string{
		"data: the new oil", "data:image/png is a media type, is it not?", "data:text/plain,hello", "Data", "d",
		strings.Repeat("a", 100_000), strings.Repeat("_", 50_000), strings.Repeat("0123456789abcdef", 100),
		"![x](data:image/png;base64,iVBORw0KGgo=)",
	} {
		for _, body := range []string{
			`{"messages":[{"role":"user","content":"` + text + `"}]}`,
			`{"messages":[{"content":[{"type":"text","text":"` + text + `"}]}]}`,
			`{"prompt":["` + text + `"]}`,
			`{"messages":[{"content":[{"novel":"` + text + `"}]}]}`,
		} {
			if r := Inspect([]byte(body), Options{}); r.Chars != int64(len(text)) || r.Images+r.MediaTokens != 0 {
				t.Errorf("%.60s...: %d characters of %d, %d images, %d media tokens", body, r.Chars, len(text), r.Images, r.MediaTokens)
			}
		}
	}
}

// Payloads that share a part are all charged.
func TestEveryImageOfAPartCounts(t *testing.T) {
	image := pngBase64(1024, 1024, 4000)
	for body, want := range map[string]int64{
		`{"model":"m","messages":[{"content":"hi","images":["` + image + `","` + image + `","` + image + `"]}]}`:   3,
		`{"model":"m","prompt":"hi","images":["` + image + `","` + image + `"]}`:                                   2,
		`{"messages":[{"content":["data:image/png;base64,` + image + `","data:image/png;base64,` + image + `"]}]}`: 2,
		`{"messages":[{"content":[{"image_url":{"url":"https://a.b/c"},"source":{"data":"` + image + `"}}]}]}`:     2,
	} {
		tokens := 765 * want
		if strings.Contains(body, "https") {
			tokens -= 765 - 255
		}
		if r := Inspect([]byte(body), Options{}); r.Images != want || r.ImageTokens != tokens {
			t.Errorf("%.60s...: %d images of %d tokens, want %d", body, r.Images, r.ImageTokens, want)
		}
	}
}

// Where only the size is known, or not even that.
func TestMediaArePricedByLengthWhereOnlyThatIsKnown(t *testing.T) {
	data := strings.Repeat("q7Zt/0Xa+9PbLm3R", 16_000/16) // 12,000 bytes
	for part, want := range map[string]int64{
		`{"type":"input_audio","input_audio":{"data":"` + data + `","format":"mp3"}}`:                                 15,  // 1.5 s
		`{"type":"input_audio","input_audio":{"data":"` + data + `","format":"pcm16"}}`:                               3,   // 0.25 s
		`{"type":"input_audio","input_audio":{"data":"UklGRgAAAABXQVZF` + data[16:] + `"}}`:                           4,   // 0.375 s
		`{"type":"audio","audio":{"id":"audio_1"}}`:                                                                   600, // 60 s
		`{"type":"video_url","video_url":{"url":"https://example.org/a.mp4"}}`:                                        60 * 263,
		`{"type":"video_url","video_url":{"url":"data:video/mp4;base64,AAAAGGZ0eXBtcDQy` + data[16:] + `"}}`:          64, // 240 ms
		`{"type":"file","file":{"file_id":"file-1"}}`:                                                                 200,
		`{"type":"file","file":{"file_data":"data:text/csv;base64,` + data + `"}}`:                                    3000, // 12,000/4
		`{"type":"input_file","file_url":"https://example.org/a.pdf"}`:                                                200,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x` + data + `"}}`: 200,
	} {
		r := Inspect([]byte(`{"model":"gpt-4o-audio-preview","messages":[{"content":[`+part+`]}]}`), Options{})
		if r.MediaTokens != want || r.Images != 0 {
			t.Errorf("%.90s...: %d tokens, %d images; want %d", part, r.MediaTokens, r.Images, want)
		}
	}
}

// This test prices sound by the model and, for WAV, by its own header.
func TestSoundIsPricedByModelAndHeader(t *testing.T) {
	wav := make([]byte, 44+3*48_000)
	copy(wav, "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\xc0\x5d\x00\x00\x80\xbb\x00\x00\x02\x00\x10\x00data")
	data := base64.StdEncoding.EncodeToString(wav) // 3 s of 24 kHz, 16 bit
	for model, want := range map[string]int64{"gpt-4o-audio-preview": 31, "gemini-2.5-pro": 97, "voxtral-small": 376} {
		r := Inspect([]byte(`{"model":"`+model+`","messages":[{"content":[{"type":"input_audio","input_audio":{"data":"`+data+`","format":"wav"}}]}]}`), Options{})
		if r.MediaTokens < want-1 || r.MediaTokens > want {
			t.Errorf("%s: %d tokens for three seconds, want %d", model, r.MediaTokens, want)
		}
	}
}
