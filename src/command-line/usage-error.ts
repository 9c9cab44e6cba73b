/** An error of the command line: the message names the flag or argument, and what it accepts. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}
