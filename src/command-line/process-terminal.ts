import type { Terminal } from '../engine/service-definition.ts'

/** The terminal of a process. A reader that closes the pipe, as `head` does, ends the process without an error. */
export function openTerminal(process: NodeJS.Process): Terminal {
  const { stdout, stderr } = process
  stdout.on('error', (fault: NodeJS.ErrnoException) => {
    if (fault.code !== 'EPIPE') throw fault
    process.exit(0)
  })
  return {
    out: (line) => stdout.write(`${line}\n`),
    err: (line) => stderr.write(`${line}\n`),
    reader: stdout.isTTY ? 'person' : 'program',
    logReader: stderr.isTTY ? 'person' : 'program',
    // Back to the start of the line, and the rest of it erased.
    progress: (line) => stderr.isTTY && stderr.write(`\r${line}\u001b[K`),
  }
}
