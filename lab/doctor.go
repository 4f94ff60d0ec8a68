package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/permissions"
)

// DoctorRole is a role with exactly the permissions of joiner doctor.
const DoctorRole = "JoinerDoctor"

// Doctor runs `joiner doctor` from the program at path. The command has the administrator's kubeconfig, and in AWS the
// read-only permissions of deploy/iam/doctor.json. Doctor returns the command's output and exit code. If the command
// could not complete its checks, the error contains its standard error.
func (l *Lab) Doctor(ctx context.Context, path string, args ...string) (printed string, code int, err error) {
	return l.runReadOnly(ctx, path, append([]string{"doctor"}, args...)...)
}

// MigrateCheck is like Doctor for the command `joiner migrate check`.
func (l *Lab) MigrateCheck(ctx context.Context, path string, args ...string) (printed string, code int, err error) {
	return l.runReadOnly(ctx, path, append([]string{"migrate", "check"}, args...)...)
}

func (l *Lab) runReadOnly(ctx context.Context, path string, args ...string) (printed string, code int, err error) {
	if err := l.Roles.permitDoctor(); err != nil {
		return "", 0, err
	}
	env, err := l.envOf(DoctorRole)
	if err != nil {
		return "", 0, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return stdout.String(), 0, nil
	case errors.As(err, &exit) && stderr.Len() == 0:
		return stdout.String(), exit.ExitCode(), nil
	}
	return stdout.String(), 0, fmt.Errorf("run joiner %s: %w: %s", args[0], err, stderr.String())
}

// permitDoctor creates DoctorRole with its policies, unless the role exists.
func (r *Roles) permitDoctor() error {
	policies, err := permissions.Doctor(permissions.Scope{Account: r.lab.Account, Region: r.lab.Region, Cluster: r.lab.Cluster})
	if err != nil {
		return err
	}
	r.lab.Emulator.Do(func(w *world.World, now time.Time) {
		account := w.Account(r.lab.Account)
		if _, roleErr := account.Role(DoctorRole); roleErr == nil {
			return // the role exists
		}
		if err = addRole(now, account, DoctorRole, "pods.eks.amazonaws.com"); err != nil {
			return
		}
		for _, p := range policies {
			if err = attach(account, now, DoctorRole, p); err != nil {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("make role %s: %w", DoctorRole, err)
	}
	return nil
}
