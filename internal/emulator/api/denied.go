package api

import "github.com/joiner-sh/joiner/internal/emulator/world/failure"

// Denial returns the error of the call's service for a call that IAM denies. message has the reason.
func Denial(c *Call, message string) error {
	switch c.Service {
	case "ec2":
		return Forbidden("UnauthorizedOperation", "You are not authorized to perform this operation. "+message)
	case "ssm", "pricing":
		return &failure.Error{Code: "AccessDeniedException", Message: message}
	case "eks", ShiftService:
		return Forbidden("AccessDeniedException", message)
	}
	return Forbidden("AccessDenied", message)
}

// Forbidden returns an error with status 403.
func Forbidden(code, message string) error {
	return &failure.Error{Code: code, Message: message, Status: 403}
}
