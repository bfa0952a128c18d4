/** kafkajs, where it is installed; null where it is not. What else is wrong with it is thrown. */

export async function loadKafkaJs() {
  return import('kafkajs').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return null;
    throw error;
  });
}
