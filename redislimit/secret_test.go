package redislimit_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// No option and no budget shows the key of its hashes, as text or as bytes.
func TestNoKeyOfHashesIsShown(t *testing.T) {
	t.Parallel()
	secret := []byte("s3cr3t-key")
	bubble(t, 1, redislimit.Options{Secret: secret}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
		b, err := budget.New(budget.Options{Ledger: m[0]})
		if err != nil {
			t.Fatal(err)
		}
		signs := []string{string(secret), strings.Trim(fmt.Sprint(secret), "[]"), fmt.Sprintf("%x", secret), base64.StdEncoding.EncodeToString(secret)}
		for _, v := range []any{redislimit.Options{Secret: secret}, &redislimit.Options{Secret: secret}, budget.Options{Secret: secret}, m[0], b} {
			var log bytes.Buffer
			slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
			slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
			text := fmt.Sprintf("%v %+v %#v %s %q %s", v, v, v, v, v, log.String())
			text = strings.ReplaceAll(strings.ReplaceAll(text, "0x", ""), ", ", "")
			for _, sign := range signs {
				if strings.Contains(text, sign) {
					t.Errorf("%T shows %q: %s", v, sign, text)
				}
			}
		}
	})
}
