package faults

import (
	"encoding/base64"

	"github.com/joiner-sh/joiner/lab/pki"
)

// otherAuthority returns the certificate authority of another cluster, as EKS encodes it.
func otherAuthority() (string, error) {
	a, err := pki.New()
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(a.PEM), nil
}
