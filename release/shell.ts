import { spawnSync } from 'node:child_process'

export interface Ran {
  readonly code: number | null
  /** Standard output alone. */
  readonly stdout: string
  /** Standard output and standard error. */
  readonly output: string
}

/** Runs commands in bash; the first that fails ends them. */
export function attempt(command: string, folder: string): Ran {
  const env = { ...process.env, npm_config_audit: 'false', npm_config_fund: 'false' }
  const { status, stdout, stderr } = spawnSync('bash', ['-euc', command], {
    cwd: folder,
    encoding: 'utf8',
    env,
    maxBuffer: 2 ** 28,
  })
  return { code: status, stdout, output: `${stdout}\n${stderr}` }
}

/** The standard output of commands in bash. Throws when one fails. */
export function run(command: string, folder: string): string {
  const { code, stdout, output } = attempt(command, folder)
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${output}`)
  return stdout
}
