import { createRequire } from 'node:module'
import { type LocalNode, startNode } from './local-node.ts'

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/**
 * Starts anvil, a local Ethereum node, on a free port of 127.0.0.1.
 *
 * Throws when the binary package is not installed or the node does not come up.
 *
 * @example const anvil = await startAnvil(84532, ['--block-time', '2'])
 */
export async function startAnvil(chainId: number, flags: readonly string[] = []): Promise<LocalNode> {
  return startNode({
    name: 'anvil',
    file: anvilBinary(process.platform, process.arch),
    args: ['--host', '127.0.0.1', '--port', '0', '--chain-id', String(chainId), ...flags],
  })
}

/** Path of the anvil binary for a platform and architecture as Node names them; throws what to install when absent. */
export function anvilBinary(platform: string, architecture: string): string {
  const name = `@foundry-rs/anvil-${platform}-${ARCHITECTURES[architecture] ?? architecture}`
  const suffix = platform === 'win32' ? '.exe' : ''
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/anvil${suffix}`)
  } catch {
    throw new Error(
      `The sandbox needs anvil, whose package ${name} is not installed. Run: npm install --include=optional ` +
        `(anvil is published for Linux and macOS on x64 and arm64, and for Windows on x64).`,
    )
  }
}
