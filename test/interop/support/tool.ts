import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const MODULES = fileURLToPath(new URL('../node_modules/', import.meta.url))

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs a third-party program by its file below node_modules, without network calls home. */
export async function runTool(file: string, args: readonly string[]): Promise<Ran> {
  const child = spawn(process.execPath, [MODULES + file, ...args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      REDOCLY_TELEMETRY: 'off',
      REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
      NO_COLOR: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const end = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', end)
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  const [code] = await once(child, 'close')
  process.off('exit', end)
  return { code: typeof code === 'number' ? code : null, out, err }
}
