package cli

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// endpointVariable is where AWS's SDK reads the address of all services; that of one has its name behind it.
const endpointVariable = "AWS_ENDPOINT_URL"

// EndpointProblem says which variable sends the SDK to what is no address; nil if none does. The SDK tries such an
// address for seconds and does not say where it is from.
func EndpointProblem(cfg aws.Config) error {
	if at := aws.ToString(cfg.BaseEndpoint); !isEndpoint(at) {
		name := endpointVariable
		if os.Getenv(name) != at {
			name = "endpoint_url of your AWS configuration,"
		}
		return noEndpoint(name, at)
	}
	if strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		return nil
	}
	for _, service := range []string{"ARC_ZONAL_SHIFT", "EC2", "EKS", "IAM", "PRICING", "SQS", "SSM", "STS"} {
		name := endpointVariable + "_" + service
		if at := os.Getenv(name); !isEndpoint(at) {
			return noEndpoint(name, at)
		}
	}
	return nil
}

// isEndpoint reports whether the SDK can ask there; where nothing is written, it knows the address.
func isEndpoint(at string) bool {
	address, err := url.Parse(at)
	return at == "" || err == nil && address.Host != "" && (address.Scheme == "http" || address.Scheme == "https")
}

// noEndpoint quotes what is no address, but not who it says that somebody is: in what is no URL nothing else finds a password.
func noEndpoint(name, at string) error {
	if end := strings.LastIndex(at, "@"); end >= 0 {
		at = diagnosis.Hidden + at[end:]
	}
	return fmt.Errorf("reach AWS: %s %q is no address; write for instance https://HOST, or leave it out", name, at)
}
