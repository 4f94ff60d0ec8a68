package faults

import (
	"encoding/base64"

	"github.com/joiner-sh/joiner/lab/pki"
)

// otherAuthority is the certificate authority of some other cluster, as EKS writes it.
func otherAuthority() (string, error) {
	a, err := pki.New()
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(a.PEM), nil
}
