package world

import "github.com/joiner-sh/joiner/internal/emulator/world/failure"

// maxConsole is the number of bytes of console output that EC2 keeps. It drops older bytes.
const maxConsole = 64 << 10

// AppendConsole adds text to the console output of an instance. It returns false if the instance does not exist.
func (w *World) AppendConsole(instanceID, text string) bool {
	h := w.historyOf(instanceID)
	if h == nil {
		return false
	}
	h.console = append(h.console, text...)
	if over := len(h.console) - maxConsole; over > 0 {
		h.console = append([]byte(nil), h.console[over:]...)
	}
	return true
}

// Console returns the console output of an instance of the region.
func (s *Instances) Console(id string) (string, error) {
	if !wellFormed(id, "i") {
		return "", failure.New("InvalidInstanceID.Malformed", "Invalid id: %q", id)
	}
	h := s.byID[id]
	if h == nil {
		return "", failure.New("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
	}
	return string(h.console), nil
}
