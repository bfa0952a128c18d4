/**
 * Asks a server one of ZooKeeper's four-letter words (`ruok`, `srvr`, `conf`, …), in plain TCP.
 * In: a port on this machine. Out: all the server says before it hangs up.
 */
import { connect } from 'node:net';

export function fourLetterWord(port: number, word: string, timeoutMs = 2_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`${word} got no answer`)));
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });
}
