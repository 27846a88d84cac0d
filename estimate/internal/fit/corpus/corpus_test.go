package corpus

import (
	"bytes"
	"reflect"
	"testing"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := []Piece{
		{Source: "udhr", Kind: "deu", Text: []byte("Alle Menschen\n%% sind frei\n"), Tokens: map[string]int64{"o200k": 7, "cl100k": 8}},
		{Source: "data", Kind: "hex", Held: true, Text: []byte("\x00\xff\r\n"), Tokens: map[string]int64{"o200k": 3, "cl100k": 3}},
		{Source: "code", Kind: "go", Text: []byte{}, Tokens: map[string]int64{}},
	}
	file := Format(want)
	got, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for name, bad := range map[string][]byte{
		"line ends changed": bytes.ReplaceAll(Format(want[:1]), []byte("\n"), []byte("\r\n")),
		"cut off":           file[:len(file)-2],
		"no header":         []byte("hello\n"),
		"half unknown":      []byte("%% udhr deu other 1 o200k=1 cl100k=1\nx\n"),
		"length negative":   []byte("%% udhr deu fit -1 o200k=1 cl100k=1\nx\n"),
		"length too great":  []byte("%% udhr deu fit 99 o200k=1 cl100k=1\nx\n"),
	} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("an empty folder is no error")
	}
	if err := Write(t.TempDir(), []Piece{{Source: "a b", Kind: "c"}}); err == nil {
		t.Error("a name with a blank is no error")
	}
}
