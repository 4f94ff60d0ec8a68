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

// SetIssuerKeys sets the public keys of a token issuer. document is the JSON Web Key Set at the issuer's jwks_uri.
// Keys that are not RSA keys are ignored.
func (s *STS) SetIssuerKeys(issuer string, document []byte) error {
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
		n, errN := base64.RawURLEncoding.DecodeString(k.Modulus)
		e, errE := base64.RawURLEncoding.DecodeString(k.Exponent)
		if k.Kind != "RSA" || errN != nil || errE != nil || len(e) > 4 { // exponents are small, usually 65537
			continue
		}
		keys[k.ID] = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	}
	if len(keys) == 0 {
		return fmt.Errorf("read the keys of issuer %s: no RSA key found", issuer)
	}
	if s.issuers == nil {
		s.issuers = map[string]map[string]*rsa.PublicKey{}
	}
	s.issuers[issuer] = keys
	return nil
}

// webToken is a JSON web token whose signature is not verified yet.
type webToken struct {
	keyID      string // from the header of the token
	claims     claims
	signedText string // header and claims, encoded
	signature  []byte
}

type claims struct {
	Issuer    string    `json:"iss"`
	Subject   string    `json:"sub"`
	Audiences audiences `json:"aud"`
	Expires   int64     `json:"exp"` // seconds since 1970
}

// audiences is a list whose JSON may be a single string instead.
type audiences []string

// UnmarshalJSON decodes a string or a list of strings.
func (a *audiences) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// readToken parses a token that is signed with RS256. It does not verify the signature.
func readToken(text string) (webToken, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 {
		return webToken{}, errors.New("the token does not have three parts")
	}
	var header struct {
		Algorithm string `json:"alg"`
		Key       string `json:"kid"`
	}
	t := webToken{signedText: parts[0] + "." + parts[1]}
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
	t.keyID = header.Key
	var err error
	t.signature, err = base64.RawURLEncoding.DecodeString(parts[2])
	return t, err
}

func (t webToken) isSignedBy(key *rsa.PublicKey) bool {
	sum := sha256.Sum256([]byte(t.signedText))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], t.signature) == nil
}
