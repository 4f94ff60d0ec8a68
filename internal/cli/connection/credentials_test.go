package connection_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/joiner-sh/joiner/internal/cli/connection"
)

func TestCredentialsProblem(t *testing.T) {
	t.Parallel()
	call := func(operation string, err error) error {
		return &smithy.OperationError{ServiceID: "X", OperationName: operation, Err: err}
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no credentials": {
			fmt.Errorf("no EC2 IMDS role found, %w", call("GetMetadata", errors.New("no route"))),
			"there are none in the environment, the AWS configuration or the instance",
		},
		"refused by STS": {
			fmt.Errorf("failed to retrieve credentials, %w", call("AssumeRoleWithWebIdentity", &smithy.GenericAPIError{
				Code: "ExpiredTokenException", Message: "the token has expired"})),
			"AssumeRoleWithWebIdentity: ExpiredTokenException: the token has expired (the credentials have expired, or the clock of this computer is wrong)",
		},
		"unreadable token file": {errors.New("read token:\nno such file"), "read token:; no such file"},
	} {
		if got := connection.CredentialsProblem(fmt.Errorf("failed to refresh cached credentials, %w", c.err)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
