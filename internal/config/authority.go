package config

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// authority returns a parser of PEM certificates in base64. The parser stores the base64 on one line, as the user data
// of instances needs it. It does not check that the certificates are those of the cluster.
func authority(to *string) func(string) error {
	return func(s string) error {
		line := strings.Join(strings.Fields(s), "") // the command base64 breaks lines by default
		if line == "" {
			*to = ""
			return nil
		}
		pemText, err := base64.StdEncoding.DecodeString(line)
		switch {
		case err != nil && strings.Contains(s, "-----BEGIN "):
			return errors.New("want base64, as in certificateAuthority.data of aws eks describe-cluster: encode the PEM with base64 -w0")
		case err != nil:
			return errors.New("want base64, as in certificateAuthority.data of aws eks describe-cluster")
		}
		if err := checkCertificates(pemText); err != nil {
			return err
		}
		*to = line
		return nil
	}
}

// checkCertificates returns an error unless the text has one or more PEM certificates and no other PEM blocks.
func checkCertificates(text []byte) error {
	if inner, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(text)), "")); err == nil &&
		strings.HasPrefix(string(inner), "-----BEGIN ") {
		return errors.New("it is base64-encoded twice: want the PEM of a certificate in base64, once")
	}
	for n := 0; ; n++ {
		var block *pem.Block
		block, text = pem.Decode(text)
		switch {
		case block == nil && n == 0:
			return errors.New("want the PEM of a certificate in base64, as in certificateAuthority.data of aws eks describe-cluster; this is base64 of something else")
		case block == nil && strings.Contains(string(text), "-----BEGIN "):
			return fmt.Errorf("certificate %d is cut off: want all of certificateAuthority.data of aws eks describe-cluster", n+1)
		case block == nil:
			return nil
		case block.Type != "CERTIFICATE":
			return fmt.Errorf("want only certificates, but it contains a %s", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d cannot be read (%w): want certificateAuthority.data of aws eks describe-cluster", n+1, err)
		}
	}
}
