"""Our stores under the interfaces of agent frameworks. Each adapter is an extra; none is imported unasked."""
