import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './until.ts'

export interface ReverseProxy {
  readonly url: string
  readonly output: () => string
  close(): Promise<void>
}

/** Why tests with this program are skipped here; undefined when they run. In CI its absence is an error. */
export function proxyAbsence(program: 'nginx' | 'caddy'): string | undefined {
  const { error } = spawnSync(program, [program === 'nginx' ? '-v' : 'version'])
  if (error === undefined) return undefined
  const reason = `there is no ${program} on this machine (Debian: apt-get install ${program})`
  if (process.env['CI'] !== undefined) throw new Error(reason)
  return reason
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return address.port
}

const sample = (name: string): string =>
  readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')

/** nginx with the configuration of `deploy`, in front of these ports. */
export async function startNginx(port: number, upstreams: readonly number[]): Promise<ReverseProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-nginx-'))
  const [one, two] = upstreams
  const site = sample('nginx.conf')
    .replace('127.0.0.1:4021', `127.0.0.1:${one}`)
    .replace('127.0.0.1:4022', `127.0.0.1:${two}`)
    .replace('listen 80;', `listen 127.0.0.1:${port};`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  )
  const conf = `daemon off; master_process off; pid ${join(folder, 'pid')};
error_log stderr warn; events {} http { access_log off; ${paths.join(' ')} ${site} }`
  writeFileSync(join(folder, 'nginx.conf'), conf)
  return start(
    spawn('nginx', ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')], {
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
    folder,
    port,
  )
}

/** Caddy with the configuration of `deploy`, in front of these ports. */
export async function startCaddy(port: number, upstreams: readonly number[]): Promise<ReverseProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-caddy-'))
  const [one, two] = upstreams
  const site = sample('Caddyfile')
    .replace('ratecard-1:4021', `127.0.0.1:${one}`)
    .replace('ratecard-2:4021', `127.0.0.1:${two}`)
  writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n}\n${site}`)
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
    BASE_URL: `http://127.0.0.1:${port}`,
  }
  const args = ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
  return start(spawn('caddy', args, { env, stdio: ['ignore', 'pipe', 'pipe'] }), folder, port)
}

async function start(
  child: ChildProcess & { readonly stdout: NodeJS.ReadableStream; readonly stderr: NodeJS.ReadableStream },
  folder: string,
  port: number,
): Promise<ReverseProxy> {
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8')
    })
  const kill = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', kill)
  const url = `http://127.0.0.1:${port}`
  await until(`${child.spawnfile} listens`, async () => {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} has ended:\n${output}`)
    return fetch(url).then(
      () => true,
      () => false,
    )
  })
  return {
    url,
    output: () => output,
    close: async () => {
      process.off('exit', kill)
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
