package batchfile

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

func Example() {
	in := NewLines(strings.NewReader(`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}` + "\n{}\n"))
	for n := 1; ; n++ {
		line, long, err := in.Next()
		if err == io.EOF && len(line) == 0 {
			break
		}
		r, bad := ParseRequest(line, long)
		fmt.Println(n, r.CustomID, bad)
	}
	id := "a"
	line, _ := Encode(Answer{ID: "batch_req_1", CustomID: &id, Response: &Response{StatusCode: 200, Body: AsJSON([]byte(`<html>`))}})
	fmt.Print(string(line))
	// Output:
	// 1 a <nil>
	// 2  custom_id is missing
	// {"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"request_id":"","body":"<html>"},"error":null}
}

// A line is read the same way for any length, end and buffer.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	in := NewLines(strings.NewReader("\uFEFFa\r\n\n" + long + "\nlast"))
	for i, want := range []string{"a", "", long, "last"} {
		line, cut, err := in.Next()
		if string(line) != want || cut || (err == io.EOF) != (i == 3) {
			t.Errorf("line %d: %d bytes, %v, %v; want %d bytes", i, len(line), cut, err, len(want))
		}
	}
	if want := int64(len("\uFEFFa\r\n\n" + long + "\nlast")); in.At() != want {
		t.Errorf("at %d, want %d", in.At(), want)
	}
}

// The fast reading of a head and the full one agree.
func TestHeadBothWays(t *testing.T) {
	id := "k \"\\\u2028 鍵"
	for _, a := range []Answer{
		{ID: "batch_req_1", CustomID: &id, Response: &Response{StatusCode: 200, RequestID: "req_1", Body: AsJSON([]byte(`{"a":1}`))}},
		{ID: "batch_req_2", CustomID: &id, Error: &Failure{Code: "x", Message: "y"}},
		{ID: "batch_req_3", Error: &Failure{Code: "x", Message: "y"}},
	} {
		line, err := Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		fast, ok := scanHead(line)
		var m map[string]any
		json.Unmarshal(line, &m)
		other, _ := json.Marshal(m) // another order of members
		slow, ok2 := ParseHead(other, false)
		if !ok || !ok2 || !reflect.DeepEqual(fast, slow) || fast.ID != a.ID || a.CustomID != nil && fast.CustomID != id {
			t.Errorf("fast %+v %v, slow %+v %v", fast, ok, slow, ok2)
		}
	}
	for _, bad := range []string{"", "{}", "dear diary", `{"id":"a","custom_id":"b"}`, `{"id":"a","custom_id":"b","response":null,"error":null}`,
		`{"id":"a","custom_id":"b","response":{"status_code":200,"request_id":"","body":{}}`} {
		if h, ok := ParseHead([]byte(bad), false); ok {
			t.Errorf("%s is taken for %+v", bad, h)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add(`{"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"request_id":"","body":{}},"error":null}`)
	f.Add(`{"id":"batch_req_1","custom_id":null,"response":null,"error":{"code":"x","message":"y"}}`)
	f.Fuzz(func(t *testing.T, line string) {
		h, ok := ParseHead([]byte(line), false)
		if ok && (h.ID == "" || !json.Valid([]byte(line))) {
			t.Fatalf("%q gives %+v", line, h)
		}
		ParseHead([]byte(line), true)
		ParseRequest([]byte(line), false)
	})
}

func TestJoin(t *testing.T) {
	for _, c := range [][3]string{
		{"https://h", "/v1/x", "https://h/v1/x"},
		{"https://h/", "/v1/x", "https://h/v1/x"},
		{"https://h/v1", "/v1/x", "https://h/v1/x"},
		{"https://h/v1/", "/v1/x?a=b", "https://h/v1/x?a=b"},
		{"https://h/openai", "/v1/x", "https://h/openai/v1/x"},
		{"https://h/v1", "/v1beta/x", "https://h/v1/v1beta/x"},
	} {
		if got := Join(c[0], c[1]); got != c[2] {
			t.Errorf("Join(%s, %s) = %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
