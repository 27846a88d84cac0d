package retry

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]Options{
		"Attempts":      {Attempts: -1},
		"MinBackoff":    {MinBackoff: -1},
		"MaxBackoff":    {MaxBackoff: -time.Second},
		"MaxRetryAfter": {MaxRetryAfter: -1},
		"MaxElapsed":    {MaxElapsed: -1},
		"MaxBuffer":     {MaxBuffer: -1},
		"above":         {MinBackoff: 2, MaxBackoff: 1},
	} {
		if rt, err := New(nil, o); err == nil || rt != nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, %v", field, rt, err)
		}
	}
	for _, c := range []struct{ in, want Options }{
		{Options{}, Options{Attempts: 3, MinBackoff: 500 * time.Millisecond, MaxBackoff: 8 * time.Second, MaxRetryAfter: time.Minute}},
		{Options{MinBackoff: time.Minute}, Options{Attempts: 3, MinBackoff: time.Minute, MaxBackoff: time.Minute, MaxRetryAfter: time.Minute}},
		{Options{MaxBackoff: time.Millisecond}, Options{Attempts: 3, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, MaxRetryAfter: time.Minute}},
	} {
		got, err := c.in.withDefaults()
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v becomes %+v, %v", c.in, got, err)
		}
	}
	if rt := mustNew(t, nil, Options{}); rt.base != http.DefaultTransport {
		t.Error("nil is not the default transport")
	}
}
