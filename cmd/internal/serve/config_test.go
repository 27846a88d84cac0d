package serve

import (
	"strings"
	"testing"
	"time"
)

// A mistake is named with its line or its key.
func TestConfigNamesWhatIsWrong(t *testing.T) {
	up := "[[upstream]]\nname = \"a\"\nurl = \"http://h\"\n"
	tenant := "[[tenant]]\nname = \"t\"\ntoken_env = \"TOKEN_A\"\n"
	for config, want := range map[string]string{
		"":                              "no [[upstream]]",
		"listen = 7\n":                  "line 1",
		up + "rmp = 3\n":                `line 4: unknown key "upstream.rmp"`,
		up + "[upstream.x]\ny = 1":      "unknown key",
		up + "rpm = -1\n":               "rpm is -1",
		up + "rpm = \"3\"\n":            "line 4",
		up + "rpm = 3\nrpm = 3\n":       "line 5",
		up + "burst = \"soon\"\n":       "soon",
		up + "path = \"x\"\n":           "path",
		up + "path = \"/a/../b\"\n":     "path",
		up + "models = [\"[\"]\n":       "models",
		up + "provider = \"no\"\n":      "provider",
		up + "budget = \"mine\"\n":      "budget",
		up + "charge = \"maybe\"\n":     "maybe",
		up + "queue = -1\n":             "queue",
		up + "key_env = \"NONE\"\n":     "NONE is not set",
		up + up:                         "name",
		"max_body = \"12 tons\"\n" + up: "12 tons",
		"listen = \"here\"\n" + up:      "listen",
		"[[upstream]]\nname = \"a\"\nurl = \"ftp://h\"\n":      "url",
		"[[upstream]]\nname = \"a\"\nurl = \"http://u:p@h\"\n": "url",
		up + tenant: "set key_env",
		up + "key_env = \"PROVIDER_KEY\"\n[[tenant]]\nname = \"t\"":                             "token_env and token_sha256",
		up + "key_env = \"PROVIDER_KEY\"\n" + tenant + "priority = \"high\"":                    "priority",
		up + "key_env = \"PROVIDER_KEY\"\n" + tenant + "weight = -1":                            "Weight is -1",
		up + "key_env = \"PROVIDER_KEY\"\n" + tenant + "upstreams = [\"x\"]":                    `no upstream "x"`,
		up + "key_env = \"PROVIDER_KEY\"\n" + tenant + strings.Replace(tenant, `"t"`, `"u"`, 1): "same token",
		up + "key_env = \"PROVIDER_KEY\"\n[[tenant]]\nname = \"t\"\ntoken_sha256 = \"12\"":      "64 hex digits",
		up + "key_env = \"PROVIDER_KEY\"\n" + strings.Replace(tenant, "TOKEN_A", "SHORT", 1):    "at least 16",
	} {
		_, err := Parse([]byte(config), secrets1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not name %q", config, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: the error holds a secret", config)
		}
	}
}

// A key that is absent has the documented value.
func TestConfigDefaults(t *testing.T) {
	c, err := Parse([]byte("max_body = \"1 kB\"\ndrain = \"30s\"\n"+strings.Replace(plain, "URL", "https://api.anthropic.com", 1)), secrets1)
	if err != nil {
		t.Fatal(err)
	}
	u := c.Upstreams[0]
	if c.Listen != "127.0.0.1:8080" || c.Admin != "127.0.0.1:9464" || c.MaxBody != 1024 || c.Drain.or(1) != 30*time.Second ||
		u.Provider != "anthropic" || u.Budget != "key" || time.Duration(u.MaxWait) != 10*time.Minute || u.Queue != 10_000 {
		t.Errorf("%+v", c)
	}
}

// The example of the documentation can be used as it is.
func TestExampleConfig(t *testing.T) {
	c, err := load("../../tripmeter.toml", func(name string) string { return "a-token-or-key-of-" + name })
	if err != nil || len(c.Upstreams) < 2 || len(c.Tenants) < 2 {
		t.Fatal(c, err)
	}
}

// No bytes make the parser panic, and every accepted config has all defaults.
func FuzzConfig(f *testing.F) {
	f.Add(plain)
	f.Add(tenants)
	f.Add("max_body = \"3MB\"\n" + plain + "rpm = 3\n[upstream.limits.m]\ntpm = 7\n")
	f.Fuzz(func(t *testing.T, config string) {
		c, err := Parse([]byte(config), secrets1)
		if err != nil {
			if strings.Contains(err.Error(), "canary") && !strings.Contains(config, "canary") {
				t.Fatal("the error holds a secret")
			}
			return
		}
		if len(c.Upstreams) == 0 || c.Listen == "" || c.MaxBody <= 0 {
			t.Fatalf("%+v", c)
		}
		for i := range c.Upstreams {
			if c.Upstreams[i].base == nil || len(c.Tenants) > 0 && c.Upstreams[i].key == "" {
				t.Fatalf("%+v", c.Upstreams[i])
			}
		}
	})
}
