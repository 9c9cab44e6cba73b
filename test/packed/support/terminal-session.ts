import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Block } from '../../support/markdown.ts'

interface Ran {
  readonly code: number | null
  /** Standard output and standard error. */
  readonly output: string
}

interface Server {
  readonly child: ChildProcess
  readonly output: () => string
  readonly url: string
}

const SERVES = /ratecard serve|npm run sandbox|npm start|node (?:serve|upstream)\.js/
/** Commands that the setup of the test or CI has already run. */
const DONE = /^npm (?:cit?|install|pack)\b/

/** A terminal that runs the commands of a page in order: folder and variables stay from one to the next. */
export class Session {
  readonly #state = mkdtempSync(join(tmpdir(), 'ratecard-session-'))
  readonly #done: RegExp
  readonly #servers: Server[] = []

  constructor(folder: string, done = DONE) {
    this.#done = done
    writeFileSync(join(this.#state, 'folder'), folder)
    writeFileSync(join(this.#state, 'variables'), 'export PORT=0\n')
  }

  /** Runs a block of commands; a server keeps running until the end. */
  async run({ text }: Pick<Block, 'text'>): Promise<Ran> {
    const lines = text
      .replaceAll('\\\n', ' ')
      .split('\n')
      .map((line) => line.replace(/\s+# .*/, '').trim())
      .filter((line) => line !== '' && !line.startsWith('#'))
    const outputs: string[] = []
    for (const line of lines.filter((each) => !this.#done.test(each))) {
      const { code, output } = SERVES.test(line) ? await this.#serve(line) : await this.#type(line)
      outputs.push(output)
      if (code !== 0) return { code, output: `${line}\n${outputs.join('')}` }
    }
    return { code: 0, output: outputs.join('') }
  }

  /** Address of the server that was started last. */
  get url(): string {
    return this.#servers.at(-1)?.url ?? ''
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => this.#stop(server)))
    spawnSync('rm', ['-rf', this.#state])
  }

  #script(line: string): string {
    const { folder, variables } = { folder: `${this.#state}/folder`, variables: `${this.#state}/variables` }
    const here = line.replaceAll(
      /(?:http:\/\/)?localhost:4021/g,
      this.#servers.at(-1)?.url ?? 'http://localhost:9',
    )
    return `cd "$(cat ${folder})"; . ${variables}; set -euo pipefail; trap 'pwd > ${folder}; export -p > ${variables}' EXIT; ${here}`
  }

  async #type(line: string): Promise<Ran> {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', this.#script(line)], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    })
    // The next command expects the edited catalog to be loaded.
    if (/^sed -i .*catalog\.yaml$/.test(line)) await this.#reloaded()
    return { code: status, output: `${stderr}${stdout}` }
  }

  async #serve(line: string): Promise<Ran> {
    const child = spawn('bash', ['-c', this.#script(line)], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    })
    let output = ''
    const take = (chunk: Buffer): void => void (output += chunk.toString())
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    const said = (): RegExpExecArray | null => /^listening on (\S+)$/m.exec(output)
    while (said() === null && child.exitCode === null)
      await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
    const [, url = ''] = said() ?? []
    if (url === '') return { code: child.exitCode ?? 1, output }
    const here = url.replace(/127\.0\.0\.1|0\.0\.0\.0/, 'localhost')
    this.#servers.push({ child, output: () => output, url: here })
    return { code: 0, output }
  }

  async #reloaded(): Promise<void> {
    const server = this.#servers.at(-1)
    if (server === undefined) return
    const seen = server.output().length
    const isOver = (): boolean => /revision .+/.test(server.output().slice(seen))
    while (!isOver()) await once(server.child.stderr ?? server.child, 'data')
  }

  async #stop({ child }: Server): Promise<void> {
    if (child.pid === undefined || child.exitCode !== null) return
    const ended = once(child, 'close')
    // npm and the shell are in between: the signal goes to the whole group, like Ctrl-C.
    process.kill(-child.pid, 'SIGINT')
    await ended
  }
}
