/** How a process has ended, from the arguments of the event `exit`: a process that a signal ended has no code. */
export function describeExit(code: number | null, signal: NodeJS.Signals | null): string {
  return signal === null ? `exited with ${code}` : `was ended by ${signal}`
}
