package faults

import (
	"encoding/base64"

	"github.com/joiner-sh/joiner/lab/pki"
)

// otherAuthority creates a certificate authority, and returns its certificate in PEM and base64, as EKS does.
func otherAuthority() (string, error) {
	a, err := pki.New()
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(a.PEM), nil
}
