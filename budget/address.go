package budget

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/tripmeter/tripmeter/limit"
)

// An Address says where a call goes, and who pays. Calls of one account and one
// model share what is learned. The zero Address is that of an account without a
// host.
type Address struct {
	// Host is the server, with its port if that is not the usual one, in any case.
	Host string

	// Account names the account. Empty, it is made of the three fields that
	// follow. A name need not be a secret: it is shown.
	Account string

	// Credential, Organization and Project tell accounts of a host apart. They
	// are secrets: only a keyed hash of them is kept and shown.
	Credential, Organization, Project string

	// Model is the model, or the deployment. Empty, the call takes from the
	// account alone.
	Model string
}

// String is the host and the model, and nothing of who pays.
func (a Address) String() string { return a.Host + ofModel + a.Model }

// GoString is String, for %#v.
func (a Address) GoString() string { return a.String() }

// key finds a path again without keeping a secret, and without its hash, which
// costs a microsecond. Two hashes with seeds of the budget are 128 bits.
type key struct {
	host, account, model string
	secret               [2]uint64
}

func (b *Budget) key(a *Address) key {
	k := key{host: a.Host, account: a.Account, model: a.Model}
	if a.Account == "" && (a.Credential != "" || a.Organization != "" || a.Project != "") {
		for i := range k.secret {
			var h maphash.Hash
			h.SetSeed(b.seeds[i])
			for _, s := range [...]string{a.Credential, a.Organization, a.Project} {
				h.WriteString(s)
				h.WriteByte(0)
			}
			k.secret[i] = h.Sum64()
		}
	}
	return k
}

// The names of scopes. No two addresses have one name: a host holds neither "#"
// nor "/", a name of an account no "/" once it is cleaned.
//
//	api.openai.com                  an account without a credential
//	api.openai.com#3f2a9b1c0d4e     with one, by the keyed hash of it
//	api.openai.com#3f2a9b1c0d4e/gpt-4o
//	api.openai.com#3f2a9b1c0d4e/shared gpt-4o*    models that share a limit
//	@name                                         a tenant
const (
	ofAccount = "#"
	ofModel   = "/"
)

// accountName is the name of the scope of an account.
func (b *Budget) accountName(a *Address) string {
	host := b.clean(strings.ToLower(strings.TrimSuffix(a.Host, ".")), 80, "#/")
	if host == "" {
		host = "no host"
	}
	switch {
	case a.Account != "":
		return host + ofAccount + b.clean(a.Account, 40, "/")
	case a.Credential != "" || a.Organization != "" || a.Project != "":
		return host + ofAccount + b.hash(a.Credential, a.Organization, a.Project)
	}
	return host
}

// modelName is the name of the scope of a model of an account.
func (b *Budget) modelName(account, model string) string {
	return account + ofModel + b.clean(model, 80, "")
}

// groupName is the name of the scope of models that share a limit. A name of a
// model has no space.
func (b *Budget) groupName(account string, m *Model) string {
	return account + ofModel + "shared " + b.clean(m.Names[0], 70, "")
}

// clean bounds a name that comes from outside. One that is longer than most bytes,
// or has bytes that are not to be shown, is cut and gets its hash.
func (b *Budget) clean(name string, most int, without string) string {
	odd := func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '~' || r == 0xfffd || strings.ContainsRune(without, r)
	}
	if len(name) <= most && strings.IndexFunc(name, odd) < 0 {
		return name
	}
	short := strings.Map(func(r rune) rune {
		if odd(r) || r > 0x7f {
			return '_'
		}
		return r
	}, name[:min(len(name), most-13)])
	return short + "~" + b.hash(name)
}

// hashKey is the key of the hashes of a budget.
func (o *Options) hashKey() []byte {
	if len(o.Secret) > 0 {
		return slices.Clone(o.Secret)
	}
	if k, ok := o.Ledger.(limit.Keyed); ok {
		if key := k.HashKey(); len(key) > 0 { // a hash without a key hides nothing
			return key
		}
	}
	key := make([]byte, 32)
	rand.Read(key)
	return key
}

// hash is a keyed hash of strings, cut to 48 bits: it tells accounts apart and
// tells nothing else.
func (b *Budget) hash(parts ...string) string {
	h := hmac.New(sha256.New, b.secret)
	for _, s := range parts {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
