import { parentPort } from 'node:worker_threads'
import { replyTo } from './thread-reply.ts'

/** Makes the running thread one of a `ThreadPool`: says that it is ready and then answers every task. */
export function serveWorker<Task, Result>(perform: (task: Task) => Result | Promise<Result>): void {
  parentPort?.on('message', (task: Task) => {
    void replyTo(task, perform).then((reply) => parentPort?.postMessage(JSON.stringify(reply)))
  })
  parentPort?.postMessage('ready')
}
