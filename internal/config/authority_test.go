package config

import (
	"encoding/base64"
	"strings"
	"testing"
)

// someAuthority is the certificate authority of no real cluster, as PEM in base64.
const someAuthority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJjVENDQVJhZ0F3SUJBZ0lVVm1uMzVWaFcxam5Bc3RkWW95ZDFaZ3F6cm04d0NnWUlLb1pJemowRUF3SXcKRlRFVE1CRUdBMVVFQXd3S2EzVmlaWEp1WlhSbGN6QWdGdzB5TmpFeE1qSXhOREUxTWpCYUdBOHlNVEkyTVRBeQpPVEUwTVRVeU1Gb3dGVEVUTUJFR0ExVUVBd3dLYTNWaVpYSnVaWFJsY3pCWk1CTUdCeXFHU000OUFnRUdDQ3FHClNNNDlBd0VIQTBJQUJFZjZJdVY5TTFPMk9ScVk4c2Fzd1QraTExbjBlSDdUZkxvTENPSzIrMUh6YW5pK0lyOW4KekFRNUdiVGdqaUx3UWVYTEphS0NRSmNJN0JSZ2RzcEhEdktqUWpCQU1BOEdBMVVkRXdFQi93UUZNQU1CQWY4dwpEZ1lEVlIwUEFRSC9CQVFEQWdJRU1CMEdBMVVkRGdRV0JCUnkxdXlDeGYzSEFGeTJYVnlFUFhkM3Fwd3JoakFLCkJnZ3Foa2pPUFFRREFnTkpBREJHQWlFQTFyVUE2N0NuSEJYU3RVd3JQYnFnZnRSOXVQRlYrRUhCWEJSMFhNVEMKUElvQ0lRQzhrQktYeDZKcFJqVDBzYmZ1RGh0Z3NXUFJoVXN1TlBzWmRTWHZnVms1Y2c9PQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg=="

// TestAuthority: certificates are accepted with any line breaks in base64. Other text is refused with a one-line error.
func TestAuthority(t *testing.T) {
	t.Parallel()
	pem, err := base64.StdEncoding.DecodeString(someAuthority)
	if err != nil {
		t.Fatal(err)
	}
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, c := range map[string]struct{ value, wantError string }{
		"as EKS returns it":    {someAuthority, ""},
		"on several lines":     {someAuthority[:76] + "\n" + someAuthority[76:152] + "\r\n" + someAuthority[152:] + "\n", ""},
		"empty":                {"", ""},
		"other text":           {encoded("ca"), "this is base64 of something else"},
		"a path":               {encoded("/etc/kubernetes/ca.crt"), "this is base64 of something else"},
		"encoded twice":        {encoded(someAuthority), "it is base64-encoded twice"},
		"not encoded":          {string(pem), "encode the PEM with base64 -w0"},
		"first one cut off":    {encoded(string(pem[:200])), "something else"},
		"second one cut off":   {encoded(string(pem) + string(pem[:200])), "certificate 2 is cut off"},
		"a key":                {encoded("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "it contains a PRIVATE KEY"},
		"an empty certificate": {encoded("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "certificate 1 cannot be read"},
		"cut base64":           {someAuthority[:101], "want base64"},
		"URL-safe base64":      {"LS0t_-==", "want base64"},
		"two certificates":     {encoded(string(pem) + string(pem)), ""},
	} {
		var got string
		err := authority(&got)(c.value)
		if c.wantError == "" {
			if want := strings.Join(strings.Fields(c.value), ""); err != nil || got != want {
				t.Errorf("%s: error %v, stored %q; want no error, and %q", name, err, got, want)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.wantError) || strings.Contains(err.Error(), "\n") || got != "" {
			t.Errorf("%s: error %v, stored %q; want an error of one line with %q", name, err, got, c.wantError)
		}
	}
}
