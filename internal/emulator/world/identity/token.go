package identity

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Publish has an issuer show the keys that its tokens are signed with, as the document that its jwks_uri leads to. Keys of kinds other than
// RSA are passed over.
func (s *STS) Publish(issuer string, document []byte) error {
	var set struct {
		Keys []struct {
			Kind     string `json:"kty"`
			ID       string `json:"kid"`
			Modulus  string `json:"n"`
			Exponent string `json:"e"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil {
		return fmt.Errorf("read the keys of issuer %s: %w", issuer, err)
	}
	keys := map[string]*rsa.PublicKey{}
	for _, k := range set.Keys {
		n, err := base64.RawURLEncoding.DecodeString(k.Modulus)
		e, err2 := base64.RawURLEncoding.DecodeString(k.Exponent)
		if k.Kind != "RSA" || err != nil || err2 != nil || len(e) > 4 {
			continue
		}
		keys[k.ID] = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	}
	if len(keys) == 0 {
		return fmt.Errorf("read the keys of issuer %s: there is none of RSA", issuer)
	}
	if s.issuers == nil {
		s.issuers = map[string]map[string]*rsa.PublicKey{}
	}
	s.issuers[issuer] = keys
	return nil
}

// webToken is a JSON web token whose signature is not verified yet.
type webToken struct {
	key       string // id of the key that it says it is signed with
	claims    claims
	signed    string // what the signature is of
	signature []byte
}

// claims are what a token says.
type claims struct {
	Issuer    string    `json:"iss"`
	Subject   string    `json:"sub"`
	Audiences audiences `json:"aud"`
	Expires   int64     `json:"exp"` // seconds since 1970
}

// audiences is a text or a list of them.
type audiences []string

// UnmarshalJSON reads either.
func (a *audiences) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

func readToken(text string) (webToken, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 {
		return webToken{}, errors.New("a token has three parts")
	}
	var header struct {
		Algorithm string `json:"alg"`
		Key       string `json:"kid"`
	}
	t := webToken{signed: parts[0] + "." + parts[1]}
	for i, into := range []any{&header, &t.claims} {
		part, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(part, into)
		}
		if err != nil {
			return webToken{}, fmt.Errorf("read part %d of a token: %w", i+1, err)
		}
	}
	if header.Algorithm != "RS256" {
		return webToken{}, fmt.Errorf("a token is signed by %q, want RS256", header.Algorithm)
	}
	t.key = header.Key
	var err error
	t.signature, err = base64.RawURLEncoding.DecodeString(parts[2])
	return t, err
}

func (t webToken) signedBy(key *rsa.PublicKey) bool {
	sum := sha256.Sum256([]byte(t.signed))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], t.signature) == nil
}
